/*
 * The protocol between requests, leases and the worker of one device, for two units and memory for one of them.
 *
 * Mirrors src/residency: lease.c (pin, start, wait, release), residency.c (make_room, send_away, let_go) and mover.c
 * (one transition at a time, failing at will). The lock is an atomic block; a wait for the condition is a guard
 * that is tried again whenever anything changes, so a wake-up that would be lost in the code is a deadlock here.
 *
 * Checked: memory never exceeds the budget; a lease that was given holds a resident unit; a unit that is freed has
 * no lease; no deadlock (spin's own check of end states: every request ends, with a lease or with an error).
 *
 * BREAK_LEASE and BREAK_TURN take a rule out; check.sh expects that spin then finds an error.
 */
#define N_UNITS    2
#define N_REQUESTS 2
#define N_ROUNDS   2
#define BUDGET     1

mtype = { ABSENT, LOADING, RESIDENT, EVICTING };

typedef unit_t {
    mtype state = ABSENT;
    bool is_busy;
    bool is_abandoned;
    bool must_leave;
    bool has_failed;
    byte n_wants;
    byte n_leases;
    byte n_failed;
};

unit_t units[N_UNITS];
byte booked;
byte turn = N_REQUESTS; /* nobody's */

#define IS_FREE(u) (units[u].n_wants == 0 && units[u].n_leases == 0)

/* Starts the way to absent of a unit that nobody holds. */
inline send_away(u) {
    if
    :: units[u].state == LOADING && units[u].is_busy -> units[u].is_abandoned = true
    :: else -> units[u].state = EVICTING
    fi
}

/* What a release and the end of a request do. */
inline let_go(u) {
    if
    :: IS_FREE(u) && units[u].state == LOADING -> send_away(u)
    :: IS_FREE(u) && units[u].state == RESIDENT && units[u].must_leave -> send_away(u)
    :: else -> skip
    fi
}

#define IS_LEAVING(u) ((units[u].state == EVICTING && units[u].n_leases == 0) || \
                       (units[u].state == LOADING && units[u].is_abandoned))
#ifdef BREAK_LEASE
#define CAN_LEAVE(u) (units[u].state == RESIDENT)
#else
#define CAN_LEAVE(u) ((units[u].state == RESIDENT || units[u].state == LOADING) && IS_FREE(u))
#endif

proctype request(byte id; byte u)
{
    byte round;
    byte seen;
    byte other = 1 - u;
    bool is_over;
    bool may_cancel;
    for (round : 1 .. N_ROUNDS) {
        atomic {
            units[u].n_wants++;
            units[u].must_leave = false;
            seen = units[u].n_failed;
            is_over = false;
            /* Who cannot cancel shows deadlocks, who can shows what a cancel leaves behind. */
            if :: may_cancel = false :: may_cancel = true fi
        }
        do
        :: is_over -> break
        :: atomic { !is_over && units[u].state == RESIDENT ->
                if :: turn == id -> turn = N_REQUESTS :: else -> skip fi;
                units[u].n_wants--;
                units[u].n_leases++
            };
            /* computing */
            assert(units[u].state == RESIDENT);
            assert(!units[u].is_busy);
            atomic {
                units[u].n_leases--;
                let_go(u);
                is_over = true
            }
        :: atomic { !is_over && units[u].state == ABSENT && units[u].n_failed != seen ->
                /* The load failed: give up, as a request without a second place does. */
                if :: turn == id -> turn = N_REQUESTS :: else -> skip fi;
                units[u].n_wants--;
                is_over = true
            }
        :: atomic { !is_over && units[u].state == ABSENT && units[u].n_failed == seen &&
                (turn == N_REQUESTS || turn == id) && (booked < BUDGET || !IS_LEAVING(other)) ->
                turn = id;
                if
                :: booked < BUDGET ->
                    booked++;
                    units[u].state = LOADING;
                    turn = N_REQUESTS
                :: booked >= BUDGET && CAN_LEAVE(other) ->
                    send_away(other)
                :: else ->
                    /* Somebody holds the memory: an error, never a wait. */
#ifndef BREAK_TURN
                    turn = N_REQUESTS;
#endif
                    units[u].n_wants--;
                    is_over = true
                fi
            }
        :: atomic { !is_over && may_cancel && units[u].state != RESIDENT ->
                /* Cancelled. */
                if :: turn == id -> turn = N_REQUESTS :: else -> skip fi;
                units[u].n_wants--;
                let_go(u);
                is_over = true
            }
        od
    }
}

/* Somebody from outside who asks for evictions. */
proctype evictor()
{
    byte u;
    for (u : 0 .. N_UNITS - 1) {
        atomic {
            if
            :: units[u].state != ABSENT -> units[u].must_leave = true; let_go(u)
            :: else -> skip
            fi
        }
    }
}

proctype mover()
{
    byte u;
end:
    do
    :: atomic { units[0].state == EVICTING && units[0].n_leases == 0 -> u = 0; units[0].is_busy = true };
        goto unload
    :: atomic { units[1].state == EVICTING && units[1].n_leases == 0 -> u = 1; units[1].is_busy = true };
        goto unload
    :: atomic { units[0].state == LOADING -> u = 0; units[0].is_busy = true };
        goto load
    :: atomic { units[1].state == LOADING -> u = 1; units[1].is_busy = true };
        goto load
    od;
load:
    /* Without the lock; then with it. */
    atomic {
        units[u].is_busy = false;
        if
        :: units[u].is_abandoned ->
            units[u].state = EVICTING
        :: !units[u].is_abandoned ->
            units[u].state = RESIDENT;
            let_go(u)
        :: !units[u].is_abandoned ->
            units[u].has_failed = true;
            units[u].state = EVICTING
        fi
    };
    goto end;
unload:
    assert(units[u].n_leases == 0);
    atomic {
        units[u].is_busy = false;
        units[u].state = ABSENT;
        booked--;
        if
        :: units[u].has_failed && units[u].n_failed < 250 -> units[u].n_failed++
        :: else -> skip
        fi;
        units[u].has_failed = false;
        units[u].is_abandoned = false;
        units[u].must_leave = false
    };
    goto end
}

/* Holds at every step. */
active proctype monitor()
{
end:
    do
    :: atomic { booked > BUDGET -> assert(false) }
    :: atomic { units[0].state == ABSENT && units[0].n_leases > 0 -> assert(false) }
    :: atomic { units[1].state == ABSENT && units[1].n_leases > 0 -> assert(false) }
    od
}

init {
    atomic {
        run mover();
        run request(0, 0);
        run request(1, 1);
        run evictor()
    }
}
