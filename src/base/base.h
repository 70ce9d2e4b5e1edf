/* src/base/base.h - the header of the module base, which includes everything that other modules may use of
 * it. */
#ifndef DTI_BASE_H
#define DTI_BASE_H

#include "base/platform.h"
#include "base/numbers/checksum.h"
#include "base/types/types.h"
#include "base/numbers/elementary.h"
#include "base/numbers/fenv.h"
#include "base/waiting/fork.h"
#include "base/waiting/futex.h"
#include "base/waiting/gate.h"
#include "base/errors/user_call.h"
#include "base/observe.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/waiting/wait.h"

#endif
