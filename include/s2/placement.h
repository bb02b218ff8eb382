/*
 * Where the units of a model are wanted: from the words of a person to places.
 *
 * A place is a device with a budget. Place 0 is always the computer's own memory, "cpu", where weights are used in the
 * mapping and cost nothing; its budget is not limited here (see sluice/ram.h). The units embed, slow, fast,
 * codec.encoder and codec.decoder may be on any place; codec.quantizer is computed on the host.
 *
 * Threads: one at a time. Opening a device starts its driver, which may cost a second and, with CUDA, half a gigabyte
 * of its memory.
 */
#ifndef S2_PLACEMENT_H
#define S2_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "s2/units.h"
#include "sluice/device.h"
#include "sluice/error.h"
#include "sluice/log.h"
#include "sluice/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When the codec decodes. */
typedef enum s2_decode_when {
    S2_DECODE_AUTO, /* together if that costs no memory, keeps the policy, or sound is wanted at once and it fits */
    S2_DECODE_TOGETHER, /* each frame as it is made */
    S2_DECODE_AFTER, /* when all frames are made: the AR and the codec are never on the device at once */
    S2_DECODE_COUNT
} s2_decode_when;

/* Zeroed memory is a good default: the best device there is, everything on it, swapped. Strings are not copied. */
typedef struct s2_place_opts {
    const char *device; /* NULL or "auto", "cpu", a device of ggml ("cuda0"), or "sim:..." */
    const char *const
            *places; /* "UNIT=DEVICE", or "codec=DEVICE" for both halves; against `device` */
    size_t n_places;
    bool has_gpu_layers; /* only the first gpu_layers layers of slow are on the device */
    uint32_t gpu_layers;
    bool embed_on_cpu;
    bool fast_on_cpu;
    bool codec_on_cpu;
    uint64_t vram_bytes; /* budget of each device; 0 = what it says is free, without a reserve */
    sl_policy policy;
    s2_decode_when decode;
} s2_place_opts;

/* Of a device's memory, what is left to others by default: the larger of 512 MiB and a sixteenth. */
#define S2_VRAM_RESERVE_BYTES    (UINT64_C(512) << 20)
#define S2_VRAM_RESERVE_FRACTION 16

/* The cpu and eight devices. */
#define S2_MAX_PLACES 9

typedef struct s2_placement s2_placement;

/*
 * Opens the devices that are asked for. With `is_planning` a device that is not there is stood in for by a
 * simulation of opts->vram_bytes, so that a plan can be made for it.
 * Errors: SL_EINVAL (an unknown unit, contradicting words, the quantizer away from the host), SL_ENOENT (no such
 * device: names those that there are), SL_EDEVICE, SL_ENOMEM.
 */
int s2_placement_open(const s2_place_opts *opts, bool is_planning, const sl_logger *log,
        s2_placement **ret_placement, sl_error *reterr);

/* Closes the devices and sets *placement to NULL. Accepts NULL. */
void s2_placement_close(s2_placement **placement);

typedef struct s2_place {
    sl_device *device;
    const char *name;
    uint64_t budget_bytes;
    const char *
            budget_source; /* "--vram", "free less a reserve", "size of the simulation", "not limited" */
    bool is_stand_in;
} s2_place;

size_t s2_placement_n_places(const s2_placement *placement);
const s2_place *s2_placement_place(const s2_placement *placement, size_t i_place);

/* Index of the place where a unit is wanted. */
size_t s2_placement_wanted(const s2_placement *placement, s2_unit_id unit);

/* Where it may go instead, or SL_PLAN_NONE: the host, for what nobody asked to be on a device by name. */
size_t s2_placement_second(const s2_placement *placement, s2_unit_id unit);

/* The unit is wanted on the host from now on. For what the device cannot compute. */
void s2_placement_give_up(s2_placement *placement, s2_unit_id unit);

/* Layers of slow that are where slow is wanted, at most n_layer; the others are on the host. */
uint32_t s2_placement_slow_layers(const s2_placement *placement, uint32_t n_layer);

/*
 * The devices of ggml's back ends, the CPU among them. free() is sl_devices_free's.
 * Errors: SL_ENOMEM. A device that does not start is left out, with a line in the log.
 */
int s2_devices_list(
        const sl_logger *log, sl_device_info **ret_infos, size_t *ret_n, sl_error *reterr);
void s2_devices_free(sl_device_info *infos);

/* Name of the device that "auto" means: the GPU with the most free memory, else "cpu". Points into `infos`. */
const char *s2_devices_best(const sl_device_info *infos, size_t n);

#ifdef __cplusplus
}
#endif

#endif
