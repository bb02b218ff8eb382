#include "source/ram_purse.h"

int sl__ram_purse_fill(const sl_ram_opts *opts, sl__ram_purse *ret_purse, sl_error *reterr)
{
    sl__ram_purse purse = {.opts = *opts};
    int r = sl_ram_budget_read(opts, &purse.first, reterr);
    if (r >= 0) {
        purse.left_bytes = purse.first.budget_bytes;
        *ret_purse = purse;
    }
    return r;
}

void sl__ram_purse_done(sl__ram_purse *purse)
{
    sl_ram_budget_done(&purse->first);
    purse->left_bytes = 0;
}

uint64_t sl__ram_purse_now(sl__ram_purse *purse)
{
    sl_ram_budget now = {0};
    uint64_t n_bytes = purse->left_bytes;
    if (purse->is_begun && sl_ram_budget_read(&purse->opts, &now, NULL) >= 0) {
        n_bytes = now.budget_bytes < n_bytes ? now.budget_bytes : n_bytes;
        sl_ram_budget_done(&now);
    }
    purse->is_begun = true;
    return n_bytes;
}

void sl__ram_purse_take(sl__ram_purse *purse, uint64_t n_bytes)
{
    purse->left_bytes -= n_bytes < purse->left_bytes ? n_bytes : purse->left_bytes;
}
