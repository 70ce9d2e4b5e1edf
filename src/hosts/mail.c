/* src/hosts/mail.c - the postman: sends and delivers mail. See mail.h. */
#include "hosts/mail.h"
#include "base/errors/status.h"
#include "base/text/text.h"
#include "base/waiting/futex.h"
#include "hosts/host_thread.h"
#include "hosts/life_line.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* The postman polls for SPIN_NS after something has moved, yields for YIELD_NS, and then sleeps until there
 * is mail to send, at most for NAP_NS, because the wire has no wait that sleeps. */
#define SPIN_NS  UINT64_C(20000)
#define YIELD_NS UINT64_C(500000)
#define NAP_NS   UINT64_C(100000)

/* How long the postman waits, after the end of a connection, for the life line, which says whether the other
 * host is lost. After RESIGN_NS the host with the higher number resigns. The other host may see the end of
 * the connection later, or not at all, so after TELL_NS the loss is told without the life line. */
#define RESIGN_NS UINT64_C(3000000000)
#define TELL_NS   UINT64_C(12000000000)

struct mail_frame {
    uint32_t kind;
    uint32_t about;
    uint64_t id;
    uint64_t bytes;
};

/* Mail that is to be sent, or is being sent. */
struct letter {
    struct letter *next;
    uint32_t to;
    struct mail_frame frame;
    void *data;
    struct dti_transfer of_frame, of_data;
};

/* What arrives from a host. Only the postman uses it. */
struct correspondent {
    struct dti_transfer receive;
    bool has_begun; /* the receive */
    bool has_data;  /* the receive is that of the bytes that `frame` announces, and not of a frame */
    bool has_left;  /* the host has taken leave */
    struct mail_frame frame;
    void *data;
    _Atomic bool is_lost; /* read by any thread */
    uint64_t lost_at_ns;
    bool loss_is_told;
};

struct dti_post {
    struct dti_kept kept; /* first */
    ditto_cluster *cluster;
    struct dti_mail_handler handler;
    struct correspondent *peer; /* [hosts] */
    struct letter *sending;     /* in any order. Only the postman uses it */
    bool has_resigned;          /* the same */
    pthread_t thread;

    pthread_mutex_t lock; /* of the list of letters that wait */
    struct letter *waiting, **waiting_end;
    _Atomic uint32_t wakes; /* grows when a letter is added; the postman sleeps on it */

    _Atomic bool is_closing;   /* the leaves are among the letters */
    _Atomic uint64_t limit_ns; /* when to give up waiting for those of others */
    bool is_late;              /* written by the postman, and read after its end */
};

/* -- sending -- */

static void add_letter(struct dti_post *post, struct letter *letter)
{
    pthread_mutex_lock(&post->lock);
    letter->next = NULL;
    *post->waiting_end = letter;
    post->waiting_end = &letter->next;
    pthread_mutex_unlock(&post->lock);
    /* release: pairs with the acquire of the postman, so that it finds the letter. */
    atomic_fetch_add_explicit(&post->wakes, 1, memory_order_release);
    dti_futex_wake(&post->wakes);
}

bool dti_post_has_lost(const struct dti_post *post, uint32_t host)
{
    /* relaxed: nothing else is published. */
    return atomic_load_explicit(&post->peer[host].is_lost, memory_order_relaxed);
}

ditto_status dti_post_send(struct dti_post *post, uint32_t to, const struct dti_mail *mail)
{
    bool fits = mail->bytes <= DITTO_WIRE_MOST_BYTES;
    struct letter *letter = fits ? calloc(1, sizeof *letter) : NULL;
    if (letter == NULL) {
        free(mail->data);
        return fits ? DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for a message to host %u", to)
                    : DTI_FAIL(DITTO_ERR_RANGE,
                               "a message of %zu bytes to host %u: a wire carries at most %zu", mail->bytes,
                               to, DITTO_WIRE_MOST_BYTES);
    }
    letter->to = to;
    letter->data = mail->data;
    letter->frame = (struct mail_frame){
        .kind = mail->kind, .about = mail->about, .id = mail->id, .bytes = mail->bytes
    };
    add_letter(post, letter);
    return DITTO_OK;
}

/* -- the postman: sending -- */

static void free_letter(struct letter *letter)
{
    free(letter->data);
    free(letter);
}

/* Takes all letters that wait. */
static struct letter *take_letters(struct dti_post *post)
{
    pthread_mutex_lock(&post->lock);
    struct letter *letters = post->waiting;
    post->waiting = NULL;
    post->waiting_end = &post->waiting;
    pthread_mutex_unlock(&post->lock);
    return letters;
}

/* Notes that a host is lost, which tell_of_loss tells. */
static void note_loss(struct dti_post *post, uint32_t host)
{
    if (dti_post_has_lost(post, host))
        return;
    post->peer[host].lost_at_ns = dti_now_ns();
    /* relaxed: nothing else is published. */
    atomic_store_explicit(&post->peer[host].is_lost, true, memory_order_relaxed);
}

void dti_post_resign(struct dti_post *post)
{
    post->has_resigned = true;
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        note_loss(post, h);
    dti_life_line_resign(post->cluster);
}

/* Delivers mail to this host itself. */
static void deliver_own(struct dti_post *post, struct letter *letter)
{
    const struct dti_mail mail = { .kind = letter->frame.kind,
                                   .about = letter->frame.about,
                                   .id = letter->frame.id,
                                   .data = letter->data,
                                   .bytes = letter->frame.bytes };
    letter->data = NULL; /* the handler takes it over */
    free_letter(letter);
    post->handler.deliver(post->handler.context, post->cluster->wire.host, &mail);
}

static ditto_status send_letter(const struct dti_post *post, struct letter *letter)
{
    DTI_TRY(
        dti_send_mail(post->cluster, letter->to, &letter->frame, sizeof letter->frame, &letter->of_frame));
    return letter->frame.bytes == 0 ? DITTO_OK
                                    : dti_send_mail(post->cluster, letter->to, letter->data,
                                                    letter->frame.bytes, &letter->of_data);
}

/* The wire has refused to send or receive, so something will be missing between this host and another one.
 * Without memory the other one does not know, so this host resigns. Otherwise the connection has ended. */
static void end_connection(struct dti_post *post, uint32_t host, ditto_status status)
{
    if (status == DITTO_ERR_NO_MEMORY)
        dti_post_resign(post);
    else
        note_loss(post, host);
}

/* Begins to send what waits. Mail to a lost host is dropped. */
static bool begin_sending(struct dti_post *post)
{
    bool any = false;
    for (struct letter *letter = take_letters(post), *next; letter != NULL; letter = next) {
        next = letter->next;
        any = true;
        if (letter->to == post->cluster->wire.host && !post->has_resigned) {
            deliver_own(post, letter);
            continue;
        }
        ditto_status status = dti_post_has_lost(post, letter->to) ? DITTO_OK : send_letter(post, letter);
        if (status != DITTO_OK)
            end_connection(post, letter->to, status);
        letter->next = post->sending; /* end_sending frees it */
        post->sending = letter;
    }
    return any;
}

/* Frees what was sent, or dropped. */
static bool end_sending(struct dti_post *post)
{
    bool any = false;
    for (struct letter **at = &post->sending, *letter; (letter = *at) != NULL;) {
        if (letter->of_frame.is_unfinished || letter->of_data.is_unfinished) {
            at = &letter->next;
            continue;
        }
        if (letter->of_frame.status != DITTO_OK || letter->of_data.status != DITTO_OK)
            note_loss(post, letter->to);
        *at = letter->next;
        free_letter(letter);
        any = true;
    }
    return any;
}

/* -- the postman: receiving -- */

/* Begins the receive that a host should have. Without memory for the bytes, they are received with no
 * capacity, so the wire drops them (RANGE). */
static void begin_receiving(struct dti_post *post, uint32_t host)
{
    struct correspondent *c = &post->peer[host];
    ditto_status status;
    if (c->has_begun || c->has_left || dti_post_has_lost(post, host))
        return;
    status = c->has_data ? dti_receive_mail(post->cluster, host, c->data,
                                            c->data != NULL ? c->frame.bytes : 0, &c->receive)
                         : dti_receive_mail(post->cluster, host, &c->frame, sizeof c->frame, &c->receive);
    c->has_begun = status == DITTO_OK;
    if (status != DITTO_OK)
        end_connection(post, host, status);
}

/* Delivers the mail that is complete. */
static void deliver(struct dti_post *post, uint32_t host)
{
    struct correspondent *c = &post->peer[host];
    struct dti_mail mail = { .kind = c->frame.kind,
                             .about = c->frame.about,
                             .id = c->frame.id,
                             .data = c->data,
                             .bytes = c->frame.bytes };
    c->data = NULL;
    c->has_data = false;
    if (mail.kind == DTI_MAIL_LEAVE) {
        c->has_left = true;
        post->handler.leave(post->handler.context, host);
    } else {
        post->handler.deliver(post->handler.context, host, &mail);
    }
}

/* Looks at the receive of a host. Returns true if something has arrived. */
static bool look_at(struct dti_post *post, uint32_t host)
{
    struct correspondent *c = &post->peer[host];
    if (!c->has_begun || c->receive.is_unfinished)
        return false;
    c->has_begun = false;
    if (c->loss_is_told || post->has_resigned)
        return true; /* this was under way */
    bool is_dropped = c->has_data && c->data == NULL && c->receive.status == DITTO_ERR_RANGE;
    if ((c->receive.status != DITTO_OK && !is_dropped) || c->frame.bytes > DITTO_WIRE_MOST_BYTES) {
        note_loss(post, host);
    } else if (!c->has_data && c->frame.bytes != 0) {
        c->has_data = true;
        c->data = malloc(c->frame.bytes);
    } else {
        deliver(post, host);
    }
    begin_receiving(post, host);
    return true;
}

/* -- the postman: losses -- */

/* Returns true if a loss can be told: it is one for all hosts. If the connection has ended and the host has
 * not, one of the two resigns. */
static bool is_certain(struct dti_post *post, uint32_t host)
{
    struct correspondent *c = &post->peer[host];
    if (post->cluster->life_line == NULL || c->has_left || post->has_resigned ||
        dti_life_line_has_lost_host(post->cluster, host))
        return true;
    uint64_t waited_ns = dti_now_ns() - c->lost_at_ns;
    if (waited_ns > RESIGN_NS && host < post->cluster->wire.host)
        dti_post_resign(post);
    return post->has_resigned || waited_ns > TELL_NS;
}

/* Tells of a lost host, once, and gives up what it would have sent. A receive that cannot be withdrawn has
 * taken a message, and ends when the wire is done with it. */
static bool tell_of_loss(struct dti_post *post, uint32_t host)
{
    struct correspondent *c = &post->peer[host];
    if (dti_life_line_has_lost_host(post->cluster, host))
        note_loss(post, host);
    if (!dti_post_has_lost(post, host) || c->loss_is_told || !is_certain(post, host))
        return false;
    c->loss_is_told = true;
    if (c->has_begun && dti_withdraw(post->cluster, &c->receive))
        c->has_begun = false;
    if (!c->has_left)
        post->handler.lose(post->handler.context, host);
    return true;
}

/* -- the postman -- */

/* Returns true if the post cannot be closed because of a host. The wire still uses the memory of a receive
 * that has begun. */
static bool is_awaited(const struct dti_post *post, uint32_t host)
{
    const struct correspondent *c = &post->peer[host];
    return c->has_begun || (!c->has_left && !dti_post_has_lost(post, host));
}

/* Returns true if nothing is left to send, each host has taken leave or is lost, and nothing is received. */
static bool is_complete(struct dti_post *post)
{
    if (!atomic_load_explicit(&post->is_closing, memory_order_acquire)) /* pairs with dti_post_close */
        return false;
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        if (h != post->cluster->wire.host && is_awaited(post, h))
            return false;
    pthread_mutex_lock(&post->lock);
    bool is_empty = post->waiting == NULL;
    pthread_mutex_unlock(&post->lock);
    return is_empty && post->sending == NULL;
}

static bool work(struct dti_post *post)
{
    bool any = begin_sending(post);
    dti_mail_progress(post->cluster);
    any = end_sending(post) || any;
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        if (h != post->cluster->wire.host) {
            any = look_at(post, h) || any;
            any = tell_of_loss(post, h) || any;
        }
    return any;
}

static void *postman(void *argument)
{
    struct dti_post *post = argument;
    uint64_t moved_ns = dti_now_ns();
    dti_public_function = "the mail of the hosts";
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        if (h != post->cluster->wire.host)
            begin_receiving(post, h);
    while (!is_complete(post)) {
        /* acquire: pairs with the release in add_letter. It is read before the letters are taken, so that the
         * sleep ends at once if another one has come since. */
        uint32_t wakes = atomic_load_explicit(&post->wakes, memory_order_acquire);
        bool any = work(post);
        uint64_t now = dti_now_ns();
        moved_ns = any ? now : moved_ns;
        if (now > atomic_load_explicit(&post->limit_ns, memory_order_relaxed)) {
            post->is_late = true;
            break;
        }
        if (now - moved_ns < SPIN_NS)
            dti_pause();
        else if (now - moved_ns < YIELD_NS || post->handler.polls)
            sched_yield();
        else
            dti_futex_sleep(&post->wakes, wakes, now + NAP_NS);
    }
    return NULL;
}

/* -- opening and closing -- */

static void release(struct dti_post *post)
{
    for (struct letter *letter = take_letters(post), *next; letter != NULL; letter = next) {
        next = letter->next;
        free_letter(letter);
    }
    for (uint32_t h = 0; post->peer != NULL && h < post->cluster->wire.num_hosts; h++)
        free(post->peer[h].data);
    pthread_mutex_destroy(&post->lock);
    free(post->peer);
    free(post);
}

ditto_status dti_post_check(const ditto_cluster *cluster)
{
    if ((cluster->wire.flags & DITTO_WIRE_ONE_THREAD) != 0)
        return DTI_FAIL(
            DITTO_ERR_UNSUPPORTED,
            "workers on several hosts need a network that every thread may use, and %s allows one: "
            "initialise MPI with MPI_THREAD_MULTIPLE, or use ditto_tcp_cluster",
            cluster->wire.name);
    return DITTO_OK;
}

ditto_status dti_post_open(ditto_cluster *cluster, const struct dti_mail_handler *handler,
                           struct dti_post **out)
{
    struct dti_post *post = calloc(1, sizeof *post);
    *out = NULL;
    if (post == NULL)
        return DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the mail of %u hosts", cluster->wire.num_hosts);
    post->cluster = cluster;
    post->handler = *handler;
    post->waiting_end = &post->waiting;
    atomic_init(&post->limit_ns, DTI_NEVER);
    pthread_mutex_init(&post->lock, NULL);
    post->peer = calloc(cluster->wire.num_hosts, sizeof *post->peer);
    ditto_status status = post->peer != NULL
                              ? DITTO_OK
                              : DTI_FAIL(DITTO_ERR_NO_MEMORY, "no memory for the mail of %u hosts",
                                         cluster->wire.num_hosts);
    *out = post; /* the thread may need it */
    int error_number = status == DITTO_OK ? dti_host_thread_start(&post->thread, "ditto-post", postman, post)
                                          : 0;
    if (error_number != 0)
        status = DTI_FAIL_ERRNO(DITTO_ERR_SYSTEM, error_number,
                                "the thread for the mail of the hosts cannot be started");
    if (status != DITTO_OK) {
        *out = NULL;
        release(post);
    }
    return status;
}

static ditto_status fail_late(const struct dti_post *post, uint32_t timeout_ms)
{
    char set[200];
    bool late[DTI_MAX_HOSTS] = { false };
    struct dti_text text = { set, sizeof set, 0 };
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        late[h] = h != post->cluster->wire.host && is_awaited(post, h);
    for (const struct letter *letter = post->sending; letter != NULL; letter = letter->next)
        late[letter->to] = true;
    dti_text_add_set(&text, late, post->cluster->wire.num_hosts, 0);
    return DTI_FAIL(DITTO_ERR_TIMED_OUT,
                    "waited %u ms until these hosts took leave, or the last messages to them were sent: %s",
                    timeout_ms, set);
}

ditto_status dti_post_close(struct dti_post *post, uint32_t timeout_ms)
{
    const struct dti_mail leave = { .kind = DTI_MAIL_LEAVE };
    struct dti_deadline deadline = { .timeout_ms = timeout_ms };
    ditto_status status = DITTO_OK;
    for (uint32_t h = 0; h < post->cluster->wire.num_hosts; h++)
        if (h != post->cluster->wire.host && dti_post_send(post, h, &leave) != DITTO_OK)
            status = DITTO_ERR_NO_MEMORY;
    atomic_store_explicit(&post->limit_ns, dti_deadline_at(&deadline), memory_order_relaxed);
    atomic_store_explicit(&post->is_closing, true, memory_order_release); /* pairs with is_complete */
    atomic_fetch_add_explicit(&post->wakes, 1, memory_order_release);
    dti_futex_wake(&post->wakes);
    pthread_join(post->thread, NULL);
    if (post->is_late) {
        dti_cluster_poison(post->cluster);
        dti_cluster_keep_memory(post->cluster, &post->kept); /* the wire may still use it */
        return fail_late(post, timeout_ms);
    }
    release(post);
    return status;
}
