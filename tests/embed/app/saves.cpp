// tests/embed/app/saves.cpp - a program with checkpoints in C++, built as a user would, outside of ditto.
#include <cstdio>
#include <ditto/checkpoint.hpp>

int main()
{
    ditto_variable_options options = DITTO_VARIABLE_OPTIONS_INIT;
    options.name = "x";
    {
        ditto::strategy strategy(2);
        auto x = strategy.create_variable(std::vector<double>{ 2.5 }, {}, &options);
        ditto::save(strategy, "saves_cpp.h5");
    }
    ditto::strategy strategy(3);
    auto x = strategy.create_variable(std::vector<double>(1), {}, &options);
    ditto::restore(strategy, "saves_cpp.h5");
    std::printf("saved and restored: %g\n", x.read()[0]);
}
