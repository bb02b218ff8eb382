#include "job.h"

#include "base/mem.h"

int job_create(job_kind kind, reply *answer, job **ret_job, sl_error *reterr)
{
    job *j = sl__alloc(1, sizeof *j);
    if (!j) {
        return sl__fail_nomem(reterr, sizeof *j, "a request");
    }
    j->kind = kind;
    j->answer = reply_ref(answer);
    *ret_job = j;
    return SL_OK;
}

void job_free(job **j)
{
    if (j && *j) {
        sl__free((*j)->speech.text);
        s2_voice_done(&(*j)->speech.voice);
        sl__free((*j)->voice.text);
        if ((*j)->voice.n_held) {
            atomic_fetch_sub((*j)->voice.n_held, (*j)->voice.n_sound);
        }
        sl__free((*j)->voice.sound);
        reply_unref(&(*j)->answer);
        sl__free(*j);
        *j = NULL;
    }
}
