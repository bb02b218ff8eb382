/*
 * What the numbers in a GGUF file stand for: value types of metadata and ggml's tensor types. Numbers that
 * ggml gave up stay unknown here, as they do there: nothing reads their blocks any more.
 */
#include "base/mem.h"
#include "source/gguf_index.h"

const char *sl_gguf_type_name(sl_gguf_type type)
{
    static const char *const names[SL_GGUF_TYPE_COUNT] = {
            [SL_GGUF_U8] = "u8",
            [SL_GGUF_I8] = "i8",
            [SL_GGUF_U16] = "u16",
            [SL_GGUF_I16] = "i16",
            [SL_GGUF_U32] = "u32",
            [SL_GGUF_I32] = "i32",
            [SL_GGUF_F32] = "f32",
            [SL_GGUF_BOOL] = "bool",
            [SL_GGUF_STR] = "string",
            [SL_GGUF_ARRAY] = "array",
            [SL_GGUF_U64] = "u64",
            [SL_GGUF_I64] = "i64",
            [SL_GGUF_F64] = "f64",
    };
    return (unsigned)type < SL_GGUF_TYPE_COUNT ? names[type] : "unknown";
}

unsigned sl__gguf_type_bytes(sl_gguf_type type)
{
    static const unsigned char sizes[SL_GGUF_TYPE_COUNT] = {
            [SL_GGUF_U8] = 1,
            [SL_GGUF_I8] = 1,
            [SL_GGUF_U16] = 2,
            [SL_GGUF_I16] = 2,
            [SL_GGUF_U32] = 4,
            [SL_GGUF_I32] = 4,
            [SL_GGUF_F32] = 4,
            [SL_GGUF_BOOL] = 1,
            [SL_GGUF_U64] = 8,
            [SL_GGUF_I64] = 8,
            [SL_GGUF_F64] = 8,
    };
    return (unsigned)type < SL_GGUF_TYPE_COUNT ? sizes[type] : 0;
}

bool sl_tensor_type(uint32_t type, sl_tensor_type_info *ret)
{
    /* Indexed by type number; a row without a name is a number without a type. */
    static const sl_tensor_type_info table[] = {
            [0] = {"f32", 1, 4},
            [1] = {"f16", 1, 2},
            [2] = {"q4_0", 32, 18},
            [3] = {"q4_1", 32, 20},
            [6] = {"q5_0", 32, 22},
            [7] = {"q5_1", 32, 24},
            [8] = {"q8_0", 32, 34},
            [9] = {"q8_1", 32, 36},
            [10] = {"q2_K", 256, 84},
            [11] = {"q3_K", 256, 110},
            [12] = {"q4_K", 256, 144},
            [13] = {"q5_K", 256, 176},
            [14] = {"q6_K", 256, 210},
            [15] = {"q8_K", 256, 292},
            [16] = {"iq2_xxs", 256, 66},
            [17] = {"iq2_xs", 256, 74},
            [18] = {"iq3_xxs", 256, 98},
            [19] = {"iq1_s", 256, 50},
            [20] = {"iq4_nl", 32, 18},
            [21] = {"iq3_s", 256, 110},
            [22] = {"iq2_s", 256, 82},
            [23] = {"iq4_xs", 256, 136},
            [24] = {"i8", 1, 1},
            [25] = {"i16", 1, 2},
            [26] = {"i32", 1, 4},
            [27] = {"i64", 1, 8},
            [28] = {"f64", 1, 8},
            [29] = {"iq1_m", 256, 56},
            [30] = {"bf16", 1, 2},
            [34] = {"tq1_0", 256, 54},
            [35] = {"tq2_0", 256, 66},
            [39] = {"mxfp4", 32, 17},
            [40] = {"nvfp4", 64, 36},
            [41] = {"q1_0", 128, 18},
            [42] = {"q2_0", 64, 18},
    };
    if (type >= sizeof table / sizeof table[0] || !table[type].name) {
        return false;
    }
    *ret = table[type];
    return true;
}

bool sl__tensor_bytes(
        const sl_tensor_type_info *type, const uint64_t ne[SL_GGUF_MAX_DIMS], uint64_t *ret)
{
    uint64_t n_elems = 1;
    uint64_t n_bytes = 0;
    bool is_empty = false;
    for (unsigned i = 0; i < SL_GGUF_MAX_DIMS; i++) {
        is_empty = is_empty || ne[i] == 0;
        if (ne[i] != 0 && !sl__mul_u64(n_elems, ne[i], &n_elems)) {
            return false;
        }
    }
    if (n_elems > INT64_MAX ||
            !sl__mul_u64(n_elems / type->block_elems, type->block_bytes, &n_bytes) ||
            n_bytes > INT64_MAX) {
        return false;
    }
    *ret = is_empty ? 0 : n_bytes;
    return true;
}
