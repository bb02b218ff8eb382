/* The whole public library in one include. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include "sluice/api.h"
#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/gguf.h"
#include "sluice/log.h"
#include "sluice/map.h"
#include "sluice/model.h"
#include "sluice/page_cache.h"
#include "sluice/plan.h"
#include "sluice/populate.h"
#include "sluice/ram.h"
#include "sluice/ranges.h"
#include "sluice/residency.h"
#include "sluice/span.h"

#endif
