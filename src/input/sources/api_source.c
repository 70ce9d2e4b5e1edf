/* src/input/sources/api_source.c - the functions of include/ditto/source.h, which check their arguments. */
#include "base/errors/status.h"
#include "base/types/types.h"
#include "input/dataset.h"
#include "input/sources/sources.h"

static ditto_status check_components(const void *list, uint32_t count, ditto_dataset *const *out)
{
    DTI_TRY(dti_not_null(out, "out"));
    if (list == NULL || count == 0 || count > DITTO_MAX_COMPONENTS)
        return DTI_FAIL(DITTO_ERR_INVALID, "%u components at %p: a row has 1 to %d components", count, list,
                        DITTO_MAX_COMPONENTS);
    return DITTO_OK;
}

static ditto_status check_files(const ditto_files *files, ditto_dataset *const *out)
{
    DTI_TRY(dti_not_null(files, "files"));
    DTI_TRY(dti_not_null(out, "out"));
    DTI_TRY(dti_flags_check(files->flags, DITTO_FILES_GLOB, "files->flags"));
    if (files->names == NULL || files->num_names == 0)
        return DTI_FAIL(DITTO_ERR_INVALID, "files has %u names at %p: give at least one", files->num_names,
                        (const void *)files->names);
    return DITTO_OK;
}

static ditto_status check_compression(ditto_compression compression)
{
    if ((unsigned)compression > DITTO_COMPRESSION_GZIP)
        return DTI_FAIL(DITTO_ERR_RANGE, "options->compression = %d is not a value of its enum",
                        (int)compression);
    return DITTO_OK;
}

ditto_status ditto_dataset_from_range(int64_t start, int64_t stop, int64_t step, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(dti_not_null(out, "out"));
    return dti_range_create(start, stop, step, out);
}

ditto_status ditto_dataset_from_arrays(const ditto_tensor *arrays, uint32_t num_components,
                                       ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_components(arrays, num_components, out));
    return dti_array_create(arrays, num_components, out);
}

ditto_status ditto_dataset_from_generator(const ditto_generator *generator, const ditto_tensor *row,
                                          uint32_t num_components, ditto_dataset **out)
{
    ditto_generator known;
    DTI_ENTER();
    DTI_TRY(dti_not_null(generator, "generator"));
    DTI_TRY(check_components(row, num_components, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, generator, "ditto_generator"));
    if (known.next == NULL)
        return DTI_FAIL(DITTO_ERR_INVALID, "generator->next is NULL: give the function that makes the rows");
    return dti_generator_create(&known, row, num_components, out);
}

ditto_status ditto_dataset_from_text(const ditto_files *files, const ditto_text_options *options,
                                     ditto_dataset **out)
{
    ditto_text_options known;
    DTI_ENTER();
    DTI_TRY(check_files(files, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_text_options"));
    DTI_TRY(check_compression(known.compression));
    return dti_text_create(files, &known, out);
}

ditto_status ditto_dataset_from_csv(const ditto_files *files, const ditto_csv_component *components,
                                    uint32_t num_components, const ditto_csv_options *options,
                                    ditto_dataset **out)
{
    ditto_csv_options known;
    DTI_ENTER();
    DTI_TRY(check_files(files, out));
    DTI_TRY(check_components(components, num_components, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_csv_options"));
    DTI_TRY(check_compression(known.compression));
    return dti_csv_create(files, components, num_components, &known, out);
}

ditto_status ditto_dataset_from_tfrecord(const ditto_files *files, const ditto_tfrecord_options *options,
                                         ditto_dataset **out)
{
    ditto_tfrecord_options known;
    DTI_ENTER();
    DTI_TRY(check_files(files, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_tfrecord_options"));
    DTI_TRY(check_compression(known.compression));
    return dti_tfrecord_create(files, &known, out);
}

ditto_status ditto_dataset_from_fixed(const ditto_files *files, const ditto_tensor *row,
                                      uint32_t num_components, const ditto_fixed_options *options,
                                      ditto_dataset **out)
{
    ditto_fixed_options known;
    DTI_ENTER();
    DTI_TRY(check_files(files, out));
    DTI_TRY(check_components(row, num_components, out));
    DTI_TRY(dti_options_copy(&known, sizeof known, options, "ditto_fixed_options"));
    return dti_fixed_create(files, row, num_components, &known, out);
}

ditto_status ditto_dataset_from_npy(const char *const *names, uint32_t num_components, ditto_dataset **out)
{
    DTI_ENTER();
    DTI_TRY(check_components((const void *)names, num_components, out));
    return dti_npy_create(names, num_components, out);
}
