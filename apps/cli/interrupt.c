#include "interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os_clock.h"

/* What comes within this time is the same wish: timeout(1) signals a program and then its group, a closing terminal the
 * shell and its jobs. */
#define SAME_WISH_NS UINT64_C(500000000)

/* Set by the handler, which does nothing else; nanoseconds, 0 = none yet. */
static atomic_uint_least64_t first_ns;

static void on_interrupt(int number)
{
    int os_error = errno;
    uint64_t now = sl__now_ns();
    uint64_t first = 0;
    if (!atomic_compare_exchange_strong(&first_ns, &first, now | 1) && now > first + SAME_WISH_NS) {
        (void)sigaction(number, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
        (void)raise(number); /* comes when this has returned */
    }
    errno = os_error;
}

bool interrupt_seen(void)
{
    return atomic_load(&first_ns) != 0;
}

void interrupt_catch(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction old;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) {
            (void)sigaction(numbers[i], &action, NULL);
        }
    }
}
