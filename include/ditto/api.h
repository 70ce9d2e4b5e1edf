/* include/ditto/api.h - macros that the other headers use for exports, C++, and options, and the version. */
#ifndef DITTO_API_H
#define DITTO_API_H

/* A file that does not exist ends the compilation, so that no other messages hide the first one. */
#if !defined(__linux__) || !defined(__LP64__)
#error "ditto needs Linux and a 64-bit processor: docs/versioning.md lists the platforms"
#include "ditto needs another platform"
#elif defined(__cplusplus) && __cplusplus < 201103L
#error "ditto.h needs C++11: compile with -std=c++11 or a later standard"
#include "ditto.h needs C++11"
#endif

#include <stddef.h>
#include <stdint.h>

#define DITTO_VERSION_MAJOR 0 /**< major version of the headers */
#define DITTO_VERSION_MINOR 1 /**< minor version of the headers */
#define DITTO_VERSION_PATCH 0 /**< patch version of the headers */

/** Marks a function that the library exports. */
#define DITTO_API __attribute__((visibility("default")))

/** Marks a function whose status must not be ignored. */
#define DITTO_NODISCARD __attribute__((warn_unused_result))

/** Marks a function that formats text as printf does. Parameter number text_ (from 1) is the format, and
 *  parameter number first_ is the first value. */
#define DITTO_PRINTF(text_, first_) __attribute__((__format__(__printf__, text_, first_)))

/* DITTO_BEGIN and DITTO_END enclose the declarations of a header, which have C linkage in C++.
 *
 * A struct with the field struct_size starts from its INIT macro, for example
 * `ditto_limits limits = DITTO_LIMITS_INIT;`. This holds for options, and also for structs that the library
 * fills. A call that is given such a struct with struct_size 0 returns DITTO_ERR_INVALID. A call that is
 * given options in which a field is set that only a newer version knows returns DITTO_ERR_UNSUPPORTED.
 * Structs without struct_size, such as ditto_pu and ditto_batch, need no initial value if the library fills
 * them.
 *
 * Each INIT macro is made with DITTO_OPTIONS_INIT. All fields are 0, except for struct_size. */
#ifdef __cplusplus
#define DITTO_BEGIN extern "C" {
#define DITTO_END   }
#define DITTO_OPTIONS_INIT(type)                   \
    ([] {                                          \
        type ditto_initial_{};                     \
        ditto_initial_.struct_size = sizeof(type); \
        return ditto_initial_;                     \
    }())
#else
#define DITTO_BEGIN
#define DITTO_END
#define DITTO_OPTIONS_INIT(type)    \
    {                               \
        .struct_size = sizeof(type) \
    }
#endif

DITTO_BEGIN

/** @defgroup ditto_api Version, timeouts and switches
 *  Declarations that all other headers use.
 *  @{ */

/** A timeout without a limit. In option structs, a timeout of 0 means the default. The functions of
 *  ditto/queue.h have a parameter timeout_ms instead, and 0 there means not to wait. */
#define DITTO_FOREVER UINT32_MAX

/** The number of ranges of a histogram by powers of two (ditto_coordinator_stats,
 *  ditto_optimizer_staleness). */
#define DITTO_HISTOGRAM_LENGTH 32

/** An option that is on or off. */
typedef enum ditto_switch {
    DITTO_SWITCH_DEFAULT = 0, /**< the default of the option */
    DITTO_SWITCH_ON = 1,      /**< on */
    DITTO_SWITCH_OFF = 2,     /**< off */
} ditto_switch;

/** Returns the version of the linked library as "major.minor.patch". The macros above have the version of the
 *  headers.
 *
 *  @return a constant string
 *  @par Thread safety
 *  Any thread may call it. */
DITTO_API const char *ditto_version(void);

/** @} */

DITTO_END
#endif
