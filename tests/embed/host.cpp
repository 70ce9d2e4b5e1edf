/* tests/embed/host.cpp - a host in C++ that uses the headers. operator new must still be that of the C++
 * library. */
#include <ditto.h>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <vector>

static ditto_status work(ditto_replica *self, void *)
{
    std::vector<double> values(1000, 1.0);
    DITTO_TRY(
        ditto_all_reduce(self, values.data(), values.data(), values.size(), DITTO_F64, DITTO_SUM, nullptr));
    return values[999] == ditto_num_replicas(self) ? DITTO_OK : ditto_fail(self, 1, "wrong sum");
}

int main()
{
    ditto_strategy_options options = DITTO_STRATEGY_OPTIONS_INIT;
    ditto_strategy *strategy;
    Dl_info info;
    options.num_replicas = 2;
    if (ditto_strategy_create(DITTO_MIRRORED, &options, &strategy) != DITTO_OK ||
        ditto_strategy_run(strategy, work, nullptr) != DITTO_OK)
        return std::printf("%s\n", ditto_last_error()->message), 1;
    if (ditto_strategy_destroy(strategy) != DITTO_OK)
        return 1;
    void *(*allocate)(std::size_t) = &::operator new;
    if (dladdr(reinterpret_cast<void *>(allocate), &info) == 0)
        return 1;
    std::printf("operator new %s\n", info.dli_fname);
    return std::strstr(info.dli_fname, "libstdc++") != nullptr ? 0 : 1;
}
