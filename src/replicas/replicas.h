/* src/replicas/replicas.h - the door of replicas: all that sync, vars, input and strategy may know of them. */
#ifndef DTI_REPLICAS_H
#define DTI_REPLICAS_H

#include "replicas/arena.h"
#include "replicas/context.h"
#include "replicas/crew.h"
#include "replicas/elsewhere.h"
#include "replicas/limits.h"
#include "replicas/load.h"
#include "replicas/node.h"
#include "replicas/pause.h"
#include "replicas/pin.h"
#include "replicas/placement.h"
#include "replicas/stop.h"
#include "replicas/team.h"
#include "replicas/thread.h"
#include "replicas/topology.h"
#include "replicas/trace.h"

#endif
