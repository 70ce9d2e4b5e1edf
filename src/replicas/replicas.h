/* src/replicas/replicas.h - the internal header of this module, for all other modules. */
#ifndef DTI_REPLICAS_H
#define DTI_REPLICAS_H

#include "replicas/memory/arena.h"
#include "replicas/team/context.h"
#include "replicas/helpers/crew.h"
#include "replicas/memory/remote_memory.h"
#include "replicas/machine/limits.h"
#include "replicas/machine/affinity.h"
#include "replicas/machine/numa_node.h"
#include "replicas/team/pause.h"
#include "replicas/placement/placement.h"
#include "base/waiting/stop.h"
#include "replicas/team/team.h"
#include "replicas/machine/thread.h"
#include "replicas/machine/topology.h"
#include "replicas/team/recorder.h"

#endif
