/*
 * The units of an S2 model: which tensor belongs to which. Pure.
 *
 * What lies under "quantizer." in the file but runs on either side of it (its transformers, its resampling) counts
 * to the half of the codec that uses it, so that decoding never needs what encoding needs; codec.quantizer is
 * the books alone, which are computed on the host.
 *
 * The rule goes by names alone, as the file format fixes them; a tensor that fits no rule belongs to no unit
 * and is never loaded.
 *
 * Threads: any.
 */
#ifndef S2_UNITS_H
#define S2_UNITS_H

#include <stdbool.h>
#include <stdint.h>

#include "sluice/model.h"
#include "sluice/span.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum s2_unit_id {
    S2_UNIT_EMBED,
    S2_UNIT_SLOW,
    S2_UNIT_FAST,
    S2_UNIT_CODEC_ENCODER,
    S2_UNIT_CODEC_QUANTIZER,
    S2_UNIT_CODEC_DECODER,
    S2_UNIT_NONE, /* of no unit */
    S2_UNIT_COUNT
} s2_unit_id;

const char *s2_unit_name(s2_unit_id id); /* "slow", "codec.decoder", ...; "none"; static */

/* is_codec_file: general.architecture is fish-speech-codec, whose names lack the prefix "c.". */
s2_unit_id s2_unit_of(sl_span tensor_name, bool is_codec_file);
bool s2_unit_is_codec_file(const sl_model *model);

/* True for tables that are gathered row by row. */
bool s2_unit_is_gathered(const sl_gguf_tensor *tensor);

#ifdef __cplusplus
}
#endif

#endif
