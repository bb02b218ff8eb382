/* A tokenizer.json: read, and if it is one, used on a text that has every kind of piece. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"

#include "engine/text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] =
            "It's 42.\n\n  caf\xc3\xa9 e\xcc\x81 <|im_end|> \xe4\xbd\xa0\xe5\xa5\xbd";
    s2_tokenizer *tokenizer = NULL;
    s2_tokens tokens = {0};
    sl_error err = {0};
    int r = s2_tokenizer_open_text((const char *)data, size, "input", &tokenizer, &err);
    if (r < 0) {
        if (err.code != r || err.msg[0] == '\0') {
            abort();
        }
        return 0;
    }
    int32_t n_ids = s2_tokenizer_n_ids(tokenizer);
    r = s2_tokenizer_encode(tokenizer, text, sizeof text - 1, S2_CONTROL_PARSE, &tokens, &err);
    for (size_t i = 0; r == 0 && i < tokens.n; i++) {
        if (tokens.ids[i] < 0 || tokens.ids[i] >= n_ids) {
            abort();
        }
    }
    s2_tokens_done(&tokens);
    s2_tokenizer_close(&tokenizer);
    return 0;
}
