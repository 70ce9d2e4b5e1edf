/* tests/semantics/optimizer/train_variables.h - four variables, the gradients with which replicas train them,
 * and steps of an optimizer. Variable k has rows[k] rows of two elements. */
#ifndef TRAIN_VARIABLES_H
#define TRAIN_VARIABLES_H

#include "support/as_hosts.h"
#include "support/support.h"

#define VARIABLES 4

/* The numbers of rows of the variables. */
extern const size_t rows[VARIABLES];

/* An optimizer and the variables of create_variables, which replicas train. */
struct training {
    struct report report;
    ditto_optimizer *optimizer;
    ditto_variable *variable[VARIABLES];
    ditto_dtype dtype;
    double norm[DITTO_MAX_REPLICAS]; /* the norm that ditto_apply told each replica */
    int step;                        /* the step whose gradients are applied */
};

/* Returns small whole numbers, whose sums are exact in any order. */
double gradient_of(int step, uint32_t replica, uint32_t k, size_t i);

/* Returns the sum of gradient_of over n replicas. */
double summed(int step, uint32_t n, uint32_t k, size_t i);

/* Returns the initial value of element i of variable k. */
double first_value(uint32_t k, size_t i);

/* Sets an element of an array of DITTO_F32 or DITTO_F64. */
void put(ditto_dtype dtype, void *array, size_t i, double x);

/* Returns an element of such an array. */
double get(ditto_dtype dtype, const void *array, size_t i);

/* A function for all replicas, whose argument is a `training`. Applies the gradients of gradient_of, and
 * checks that the generation of variable 1 grows by 1. */
ditto_status take_step(ditto_replica *self, void *argument);

/* Creates the variables. Variable 1 has three shards, and variable 2 a copy for each replica. */
void create_variables(ditto_strategy *s, struct training *t);

/* Destroys the optimizer, the variables and the strategy. Before that, checks that a variable cannot be
 * destroyed while its optimizer exists. */
void destroy_all(ditto_strategy *s, struct training *t);

/* A step of all variables with the gradients of gradient_of and with these options. */
struct step_with {
    struct training *t;
    ditto_apply_options options;
    double norm[DITTO_MAX_REPLICAS];
    uint32_t asking; /* the replicas with lower ids ask for the norm */
};

/* A function for all replicas, whose argument is a `step_with`. */
ditto_status take_step_with(ditto_replica *self, void *argument);

/* Returns element i of variable k. */
double value_at(struct training *t, uint32_t k, size_t i);

#endif
