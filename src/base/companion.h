/* src/base/companion.h - what libditto shows to libraries of its own version that stand beside it (libditto-hdf5), and to nobody
 * else: src/ditto.map lists it once more. */
#ifndef DTI_COMPANION_H
#define DTI_COMPANION_H

#define DTI_COMPANION __attribute__((visibility("default")))

#endif
