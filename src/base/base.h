/* src/base/base.h - the ground floor's door: everything that any other room may use of base. */
#ifndef DTI_BASE_H
#define DTI_BASE_H

#include "base/atomics.h"
#include "base/companion.h"
#include "base/cpu.h"
#include "base/crc32c.h"
#include "base/dtype.h"
#include "base/elementary.h"
#include "base/fenv.h"
#include "base/fork.h"
#include "base/futex.h"
#include "base/gate.h"
#include "base/guard.h"
#include "base/options.h"
#include "base/probe.h"
#include "base/stack.h"
#include "base/status.h"
#include "base/text.h"
#include "base/wait.h"

#endif
