/* src/input/sources/sources.h - makes datasets that are sources. api_source.c has checked the arguments. */
#ifndef DTI_SOURCES_H
#define DTI_SOURCES_H

#include <ditto/source.h>

ditto_status dti_range_create(int64_t start, int64_t stop, int64_t step, ditto_dataset **out);
ditto_status dti_array_create(const ditto_tensor *arrays, uint32_t components, ditto_dataset **out);
ditto_status dti_generator_create(const ditto_generator *generator, const ditto_tensor *row,
                                  uint32_t components, ditto_dataset **out);
ditto_status dti_text_create(const ditto_files *files, const ditto_text_options *options,
                             ditto_dataset **out);
ditto_status dti_csv_create(const ditto_files *files, const ditto_csv_component *components, uint32_t count,
                            const ditto_csv_options *options, ditto_dataset **out);
ditto_status dti_tfrecord_create(const ditto_files *files, const ditto_tfrecord_options *options,
                                 ditto_dataset **out);
ditto_status dti_fixed_create(const ditto_files *files, const ditto_tensor *row, uint32_t components,
                              const ditto_fixed_options *options, ditto_dataset **out);
ditto_status dti_npy_create(const char *const *names, uint32_t components, ditto_dataset **out);

#endif
