#include "source/gguf_head.h"

/* Most models' index is in the first 16 MiB; 1 GiB is more than any vocabulary takes. */
#define FIRST_BYTES (UINT64_C(1) << 20)
#define LAST_BYTES  (UINT64_C(1) << 30)
#define GROWTH      16

/* True if all that the index was made of came from the file: behind n_read there are zeros. */
static bool is_complete(const sl__gguf_head *head)
{
    return head->bytes.n_read == head->bytes.n_bytes ||
           sl_gguf_data_offset(head->gguf) <= head->bytes.n_read;
}

int sl__gguf_head_open(
        int fd, const char *name, uint64_t n_bytes, sl__gguf_head *ret_head, sl_error *reterr)
{
    for (uint64_t n = FIRST_BYTES;; n *= GROWTH) {
        sl__gguf_head head = {0};
        sl_error err = {0};
        uint64_t n_head = n < LAST_BYTES ? n : LAST_BYTES;
        int r = sl__os_head_read(fd, name, n_bytes, n_head, &head.bytes, reterr);
        if (r < 0) {
            return r;
        }
        bool is_last = n_head == LAST_BYTES || n_head >= n_bytes;
        r = sl_gguf_open(head.bytes.data, n_bytes, name, &head.gguf, &err);
        if (r >= 0 && is_complete(&head)) {
            *ret_head = head;
            return 0;
        }
        sl__gguf_head_done(&head);
        /* Memory does not grow back by reading more, nor does a failure in front of the zeros go away. */
        bool is_final = r == SL_ENOMEM || r == SL_EUNSUPPORTED || is_last;
        if (is_final && r >= 0) {
            return sl__fail(reterr, SL_ELIMIT, "%s: more than %d GiB in front of the weights", name,
                    (int)(LAST_BYTES >> 30));
        }
        if (is_final) {
            if (reterr) {
                *reterr = err;
            }
            return r;
        }
    }
}

void sl__gguf_head_done(sl__gguf_head *head)
{
    sl_gguf_close(&head->gguf);
    sl__os_head_done(&head->bytes);
}
