/* include/ditto/api.h - how the other headers are written: export, C and C++, options, version. */
#ifndef DITTO_API_H
#define DITTO_API_H

#include <stddef.h>
#include <stdint.h>

#define DITTO_VERSION_MAJOR 0
#define DITTO_VERSION_MINOR 1
#define DITTO_VERSION_PATCH 0

#define DITTO_API                   __attribute__((visibility("default")))
#define DITTO_NODISCARD             __attribute__((warn_unused_result))
#define DITTO_PRINTF(text_, first_) __attribute__((__format__(__printf__, text_, first_)))

/* An option struct starts zeroed but for its size: `ditto_strategy_options o = DITTO_STRATEGY_OPTIONS_INIT;` */
#ifdef __cplusplus
#define DITTO_BEGIN extern "C" {
#define DITTO_END   }
template <class Options> inline Options ditto_options_init()
{
    Options options = Options();
    options.struct_size = sizeof(Options);
    return options;
}
#define DITTO_OPTIONS_INIT(type) (ditto_options_init<type>())
#else
#define DITTO_BEGIN
#define DITTO_END
#define DITTO_OPTIONS_INIT(type)    \
    {                               \
        .struct_size = sizeof(type) \
    }
#endif

DITTO_BEGIN

/** A timeout of one's own wish: wait as long as it takes. (0 always means the default.) */
#define DITTO_FOREVER UINT32_MAX

/** The version of the library that is linked, as "major.minor.patch"; the macros above tell the header's.
 *  Any thread. The string is constant. */
DITTO_API const char *ditto_version(void);

DITTO_END
#endif
