#include "engine/nn/bind.h"

int s2_bind(const s2_weights *weights, const char *prefix, const s2_wanted *wanted, size_t n,
        sl_error *reterr)
{
    for (size_t i = 0; i < n; i++) {
        const s2_wanted *w = &wanted[i];
        int r = s2_weights_need(weights, w->kind, w->ne, w->ret, reterr, "%s.%s", prefix, w->name);
        if (r < 0) {
            return r;
        }
    }
    return SL_OK;
}
