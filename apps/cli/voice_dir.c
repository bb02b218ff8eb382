#include "voice_dir.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "s2/voice.h"

/* Environment variable as an absolute path, or NULL: the XDG rules have relative ones ignored. */
static const char *absolute_env(const char *name)
{
    const char *v = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing here sets variables */
    return v && v[0] == '/' ? v : NULL;
}

static int join(const char *a, const char *b, char **ret, sl_error *reterr)
{
    size_t n = strlen(a) + strlen(b) + 1;
    char *s = sl__alloc(n, 1);
    if (!s) {
        return sl__fail_nomem(reterr, n, "a path");
    }
    snprintf(s, n, "%s%s", a, b);
    *ret = s;
    return SL_OK;
}

int voice_dir(const char *asked, char **ret_dir, sl_error *reterr)
{
    const char *data = absolute_env("XDG_DATA_HOME");
    const char *home = absolute_env("HOME");
    if (asked) {
        return join(asked, "", ret_dir, reterr);
    }
    if (data) {
        return join(data, "/sluice/voices", ret_dir, reterr);
    }
    if (home) {
        return join(home, "/.local/share/sluice/voices", ret_dir, reterr);
    }
    return sl__fail(reterr, SL_EINVAL,
            "no folder for voices: neither XDG_DATA_HOME nor HOME is set, use --voice-dir DIR");
}

int voice_path_of(const char *dir, const char *word, char **ret_path, sl_error *reterr)
{
    char *path = NULL;
    if (!s2_voice_name_is_valid(word, strlen(word))) {
        return join(word, "", ret_path, reterr);
    }
    int r = s2_voice_path(dir, word, &path, reterr);
    if (r >= 0) {
        r = join(path, "", ret_path, reterr);
    }
    s2_voice_path_free(path);
    return r;
}
