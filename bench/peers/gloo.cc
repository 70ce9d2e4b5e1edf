/* bench/peers/gloo.cc - the same work in gloo. Each replica is a thread with its own context. The
 * transport is TCP, which is the only one for CPUs of one host. Options are made once for each work, and not
 * for each call. The present interface of gloo has no reduce-scatter. */
#include "protocol.h"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/hash_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <unistd.h>
#include <vector>

using combine = void (*)(void *, const void *, const void *, size_t);

struct replica {
    std::shared_ptr<gloo::rendezvous::Context> context;
    std::unique_ptr<gloo::BarrierOptions> meeting;
    std::function<void(int root)> call; // executes the prepared collective
};
static std::vector<replica> replicas;
static struct worker clocks[WORK_MOST_REPLICAS], *workers;
static struct work work;

static void on_all(const std::function<void(uint32_t)> &body)
{
    std::vector<std::thread> threads;
    for (uint32_t id = 0; id < replicas.size(); id++)
        threads.emplace_back([&, id] {
            pin_to_part(id, uint32_t(replicas.size()));
            body(id);
        });
    for (auto &thread : threads)
        thread.join();
}

// Returns nullptr if the operator is not measured in gloo.
template <class T> static combine combine_of(ditto_op op)
{
    return op == DITTO_SUM    ? static_cast<combine>(&gloo::sum<T>)
           : op == DITTO_MIN  ? static_cast<combine>(&gloo::min<T>)
           : op == DITTO_MAX  ? static_cast<combine>(&gloo::max<T>)
           : op == DITTO_PROD ? static_cast<combine>(&gloo::product<T>)
                              : nullptr;
}

template <class Options, class T> static std::shared_ptr<Options> reduction(uint32_t id, bool with_output)
{
    auto options = std::make_shared<Options>(replicas[id].context);
    size_t count = work.bytes / sizeof(T);
    if (!work.in_place || !with_output)
        options->setInput(reinterpret_cast<T *>(workers[id].src), count);
    if (with_output)
        options->setOutput(reinterpret_cast<T *>(workers[id].dst), count);
    options->setReduceFunction(combine_of<T>(work.op));
    return options;
}

// Prepares a collective of replica `id`. The reduce of gloo needs an output on all replicas, also on those
// that receive nothing.
template <class T> static std::function<void(int)> prepared(uint32_t id)
{
    const span own = work_part(&work, id);
    const size_t part = (own.end - own.first) / sizeof(T);
    T *src = reinterpret_cast<T *>(workers[id].src), *dst = reinterpret_cast<T *>(workers[id].dst);
    if (work.kind == BENCH_ALL_GATHER) {
        auto options = std::make_shared<gloo::AllgatherOptions>(replicas[id].context);
        if (!work.in_place)
            options->setInput(src + own.first / sizeof(T), part);
        options->setOutput(dst, work.bytes / sizeof(T));
        return [options](int) { gloo::allgather(*options); };
    }
    if (work.kind == BENCH_BROADCAST) {
        auto options = std::make_shared<gloo::BroadcastOptions>(replicas[id].context);
        options->setOutput(dst, work.bytes / sizeof(T));
        return [options](int root) {
            options->setRoot(root);
            gloo::broadcast(*options);
        };
    }
    if (work.kind == BENCH_REDUCE) {
        auto options = reduction<gloo::ReduceOptions, T>(id, true);
        return [options](int root) {
            options->setRoot(root);
            gloo::reduce(*options);
        };
    }
    auto options = reduction<gloo::AllreduceOptions, T>(id, true);
    return [options](int) { gloo::allreduce(*options); };
}

static bool does(const struct work &wanted)
{
    const bool typed = wanted.dtype == DITTO_F32 || wanted.dtype == DITTO_F64 || wanted.dtype == DITTO_I32;
    switch (wanted.kind) {
    case BENCH_BARRIER:
        return true;
    case BENCH_ALL_REDUCE:
    case BENCH_REDUCE:
        return typed && combine_of<float>(wanted.op) != nullptr;
    case BENCH_ALL_GATHER:
    case BENCH_BROADCAST:
        return typed;
    default:
        return false;
    }
}

static bool prepare(const struct work &wanted)
{
    if (!does(wanted))
        return false;
    work = wanted;
    work.replicas = uint32_t(replicas.size());
    workers = work_allocate(&work);
    on_all([](uint32_t id) {
        work_touch(&work, workers, id);
        if (work.kind != BENCH_BARRIER)
            replicas[id].call = work.dtype == DITTO_F64   ? prepared<double>(id)
                                : work.dtype == DITTO_I32 ? prepared<int32_t>(id)
                                                          : prepared<float>(id);
    });
    return true;
}

static void finish()
{
    for (auto &r : replicas)
        r.call = nullptr;
    work_free(&work, workers);
}

static void barrier(void *, uint32_t id)
{
    gloo::barrier(*replicas[id].meeting);
}

static void collective(void *, uint32_t id, const struct work *now, struct worker *)
{
    replicas[id].call(int(now->root));
}

static void answer_batch(bool baseline)
{
    static const contender_ops ops = { barrier, collective };
    struct worker *used = bench_facts[work.kind].collective ? workers : clocks;
    on_all([=](uint32_t id) { work_batch(&work, used, id, &ops, nullptr, baseline); });
    answer(work_timing(used, work.replicas), &used->counts, sizeof *used, work.replicas);
}

static void connect(uint32_t count)
{
    gloo::transport::tcp::attr where;
    where.iface = "lo";
    auto device = gloo::transport::tcp::CreateDevice(where);
    gloo::rendezvous::HashStore store;
    replicas.resize(count);
    on_all([&](uint32_t id) {
        replicas[id].context = std::make_shared<gloo::rendezvous::Context>(int(id), int(count));
        replicas[id].context->connectFullMesh(store, device);
        replicas[id].meeting = std::make_unique<gloo::BarrierOptions>(replicas[id].context);
    });
}

int main(int count, char **word)
{
    choose_counters();
    pin_to_part(0, 1); // reads the PUs of the process before any thread is bound
    connect(count > 1 ? uint32_t(atoi(word[1])) : 2);
    printf("hello %d\n", int(getpid()));
    fflush(stdout);
    for (;;) {
        const order order = read_order(stdin);
        switch (order.what) {
        case ORDER_PREPARE:
            answer_yes(prepare(order.work));
            break;
        case ORDER_BATCH:
            work.kind = order.work.kind;
            work.reps = order.work.reps;
            answer_batch(order.baseline != 0);
            break;
        case ORDER_FINISH:
            finish();
            answer_yes(true);
            break;
        case ORDER_FUNCTIONS:
            answer_yes(false);
            break;
        case ORDER_END:
            return 0;
        }
    }
}
