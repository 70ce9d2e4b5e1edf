/* tests/model/pairs.pml - changes that are made by a pair of hosts (src/hosts/pairs.h).
 *
 * Each asker makes one change. The first host of the pair makes it, and sends it to the second one, which
 * makes it too and answers. One of the two hosts may be lost at any time. What it has sent before arrives up
 * to some message. The asker and the other host learn of the loss at different times. Then the asker asks the
 * host that is left. Reads, errors, and the numbers of more changes of one asker are not in the model.
 *
 * Claims   Every asker gets an answer, and then each host that is not lost has made the change once. No host
 *          makes a change twice. While both hosts live, the second one makes the changes in the order of the
 *          first one.
 * Mutants  NO_MEMORY      A host that is asked again does not look whether it has made the change.
 *          NO_HOLD        The second host makes a change that is asked again before it has been told of the
 *                         loss.
 *          LATE_COPIES    It takes changes of the first host after it has been told of the loss.
 *          EARLY_ANSWER   The first host answers before the second one has made the change.
 *          NO_SECOND_LOSS An asker does not ask again when the second host is lost. */
#ifndef ASKERS
#define ASKERS 2
#endif

mtype = { CHANGE, ALONE };

chan to_first[ASKERS] = [3] of { mtype };
chan to_second[ASKERS] = [2] of { bit };
chan answers[ASKERS] = [4] of { bit };
chan copies = [ASKERS] of { byte };

bool first_lost, second_lost;
byte made_by_first[ASKERS], made_by_second[ASKERS], order[ASKERS], made, followed, askers_done;
bool answered[ASKERS];

#define HAS(channel, message) (channel[0]?[message] || channel[ASKERS - 1]?[message])

inline make_first(i) {
    made_by_first[i]++;
    assert(made_by_first[i] == 1);
    order[made] = i;
    made++
}

inline make_second(i) {
    made_by_second[i]++;
    assert(made_by_second[i] == 1);
    if
    :: !first_lost -> assert(order[followed] == i); followed++
    :: else
    fi
}

active [ASKERS] proctype asker() {
    byte me = _pid;
    bool knows_first, knows_second;
    to_first[me]!CHANGE;
    do
    :: answers[me]?_ -> break
    :: first_lost && !knows_first && !second_lost -> knows_first = true; to_second[me]!1
#ifndef NO_SECOND_LOSS
    :: second_lost && !knows_second && !first_lost -> knows_second = true; to_first[me]!ALONE
#endif
    od;
    assert(first_lost || made_by_first[me] == 1);
    assert(second_lost || made_by_second[me] == 1);
    answered[me] = true;
    askers_done++
}

active proctype first() {
    byte i;
    bool knows_second;
end:
    do
    :: first_lost -> break
    :: atomic { !first_lost && second_lost && !knows_second -> knows_second = true }
    :: atomic {
            !first_lost && HAS(to_first, CHANGE);
            if
            :: to_first[0]?[CHANGE] -> to_first[0]?CHANGE; i = 0
            :: to_first[ASKERS - 1]?[CHANGE] -> to_first[ASKERS - 1]?CHANGE; i = ASKERS - 1
            fi;
            make_first(i)
        }
#ifdef EARLY_ANSWER
        atomic { !first_lost -> answers[i]!1 };
        if
        :: atomic { !first_lost -> copies!i }
        :: first_lost
        fi
#else
        if
        :: atomic { !first_lost -> copies!i }
        :: first_lost
        fi
#endif
    :: atomic {
#ifdef NO_HOLD
            !first_lost && HAS(to_first, ALONE);
#else
            !first_lost && knows_second && HAS(to_first, ALONE);
#endif
            if
            :: to_first[0]?[ALONE] -> to_first[0]?ALONE; i = 0
            :: to_first[ASKERS - 1]?[ALONE] ->
                to_first[ASKERS - 1]?ALONE;
                i = ASKERS - 1
            fi;
            if
#ifndef NO_MEMORY
            :: made_by_first[i] != 0
#endif
            :: made_by_first[i] == 0 -> make_first(i)
#ifdef NO_MEMORY
            :: made_by_first[i] != 0 -> make_first(i)
#endif
            fi;
            answers[i]!1
        }
    od
}

active proctype second() {
    byte i;
    bool told;
end:
    do
    :: second_lost -> break
    :: atomic { !second_lost && first_lost && !told -> told = true }
    :: atomic {
#ifdef LATE_COPIES
            !second_lost && copies?[i] -> copies?i;
#else
            !second_lost && !told && copies?[i] -> copies?i;
#endif
            make_second(i);
            answers[i]!1
        }
    :: atomic {
#ifdef NO_HOLD
            !second_lost && HAS(to_second, 1);
#else
            !second_lost && told && HAS(to_second, 1);
#endif
            if
            :: to_second[0]?[1] -> to_second[0]?1; i = 0
            :: to_second[ASKERS - 1]?[1] -> to_second[ASKERS - 1]?1; i = ASKERS - 1
            fi;
            if
#ifndef NO_MEMORY
            :: made_by_second[i] != 0
#endif
            :: made_by_second[i] == 0 -> make_second(i)
#ifdef NO_MEMORY
            :: made_by_second[i] != 0 -> make_second(i)
#endif
            fi;
            answers[i]!1
        }
    od
}

active proctype loss() {
    if
    :: first_lost = true
    :: second_lost = true
    :: true
    fi
}
