#include "interrupt.h"

#include <signal.h>
#include <stddef.h>

/* Set by the handler: the one thing that a handler may do. */
static volatile sig_atomic_t was_interrupted;

static void on_interrupt(int number)
{
    (void)number;
    was_interrupted = 1;
}

bool interrupt_seen(void)
{
    return was_interrupted != 0;
}

void interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}
