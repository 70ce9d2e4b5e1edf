! src/fortran/ditto_optimizers.f90 - optimizers in Fortran: many variables updated from gradients.
!
!     options%rule = ditto_rule_sgd
!     options%learning_rate = 0.1d0
!     call o%create([weights, biases], options, status)
!
! and in a procedure of a run:
!
!     call o%apply(self, [tensor_of(of_weights), tensor_of(of_biases)])
!
! The rules are those of the C header ditto/optimizer.h.
module ditto_optimizers
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_internal
    implicit none
    private

    public :: optimizer, optimizer_options, optimizer_sizes

    integer(c_int), parameter, public :: ditto_rule_assign = 1, ditto_rule_add = 2, ditto_rule_sub = 3, &
                                         ditto_rule_sgd = 4, ditto_rule_adam = 5, ditto_rule_function = 6

    ! -- types --

    ! The options of an optimizer, as ditto_optimizer_options has them. The components have their defaults,
    ! and `rule` must be set. `name`, `rate_factors` and `weight_decays` are addresses for C (c_loc).
    ! `function` is a procedure with bind(c), a ditto_rule_fn.
    type, bind(c) :: optimizer_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: rule = 0
        integer(c_int) :: op = 0
        real(c_double) :: learning_rate = 0
        integer(c_int) :: has_learning_rate = 0
        real(c_double) :: momentum = 0
        integer(c_int) :: nesterov = 0
        real(c_double) :: beta1 = 0
        integer(c_int) :: has_beta1 = 0
        real(c_double) :: beta2 = 0
        integer(c_int) :: has_beta2 = 0
        real(c_double) :: epsilon = 0
        integer(c_int) :: has_epsilon = 0
        real(c_double) :: weight_decay = 0
        real(c_double) :: clip_norm = 0
        type(c_funptr) :: function = c_null_funptr
        type(c_ptr) :: user = c_null_ptr
        integer(c_int32_t) :: num_slots = 0
        type(c_ptr) :: rate_factors = c_null_ptr
        type(c_ptr) :: weight_decays = c_null_ptr
        integer(c_int32_t) :: accumulate = 0
        integer(c_int64_t) :: max_staleness = 0
        integer(c_int) :: has_max_staleness = 0
    end type

    type, bind(c) :: apply_options
        integer(c_size_t) :: struct_size = 0
        real(c_double) :: learning_rate = 0
        integer(c_int) :: has_learning_rate = 0
        type(c_ptr) :: norm = c_null_ptr
        integer(c_int64_t) :: read_steps = 0
        integer(c_int) :: has_read_steps = 0
        type(c_ptr) :: dropped = c_null_ptr
    end type

    type, bind(c) :: optimizer_properties
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: num_variables = 0
        type(c_ptr) :: iterations = c_null_ptr
    end type

    ! An optimizer. It is destroyed by destroy, before its variables.
    type :: optimizer
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: create => optimizer_create
        procedure, non_overridable :: apply => optimizer_apply
        procedure, non_overridable :: start_apply => optimizer_start_apply
        procedure, non_overridable :: finish_apply => optimizer_finish_apply
        procedure, non_overridable :: num_variables => optimizer_num_variables
        procedure, non_overridable :: iterations => optimizer_iterations
        procedure, non_overridable :: steps => optimizer_steps
        procedure, non_overridable :: slot => optimizer_slot
        procedure, non_overridable :: destroy => optimizer_destroy
        procedure, private, non_overridable :: check => optimizer_check
    end type

    ! -- C --

    interface
        function c_create(variables, n, options, out) bind(c, name='ditto_optimizer_create') result(status)
            import
            type(c_ptr), intent(in) :: variables(*)
            integer(c_int32_t), value :: n
            type(optimizer_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_destroy(o) bind(c, name='ditto_optimizer_destroy') result(status)
            import
            type(c_ptr), value :: o
            integer(c_int) :: status
        end function
        function c_apply(self, o, gradients, options) bind(c, name='ditto_apply') result(status)
            import
            type(c_ptr), value :: self, o
            type(tensor), intent(in) :: gradients(*)
            type(apply_options), intent(in) :: options
            integer(c_int) :: status
        end function
        function c_start(self, o, first, n, gradients, options) bind(c, name='ditto_apply_start') &
            result(status)
            import
            type(c_ptr), value :: self, o
            integer(c_int32_t), value :: first, n
            type(tensor), intent(in) :: gradients(*)
            type(apply_options), intent(in) :: options
            integer(c_int) :: status
        end function
        function c_finish(self, o, options) bind(c, name='ditto_apply_finish') result(status)
            import
            type(c_ptr), value :: self, o
            type(apply_options), intent(in) :: options
            integer(c_int) :: status
        end function
        function c_info(o, found) bind(c, name='ditto_optimizer_info') result(status)
            import
            type(c_ptr), value :: o
            type(optimizer_properties), intent(inout) :: found
            integer(c_int) :: status
        end function
        function c_steps(self, o, steps) bind(c, name='ditto_optimizer_steps') result(status)
            import
            type(c_ptr), value :: self, o
            integer(c_int64_t), intent(inout) :: steps
            integer(c_int) :: status
        end function
        function c_slot(o, v, name, out) bind(c, name='ditto_optimizer_slot') result(status)
            import
            type(c_ptr), value :: o
            integer(c_int32_t), value :: v
            character(kind=c_char), intent(in) :: name(*)
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
    end interface

contains

    ! The bytes of the types that C has too, for a test.
    function optimizer_sizes() result(bytes)
        integer(c_size_t) :: bytes(2)
        bytes = [storage_size(optimizer_options()), storage_size(apply_options())]/8
    end function

    ! Outside of runs.
    subroutine optimizer_create(self, variables, options, status)
        class(optimizer), intent(inout) :: self
        type(variable), intent(in) :: variables(:)
        type(optimizer_options), intent(in) :: options
        integer, intent(out) :: status
        type(optimizer_options) :: given
        type(c_ptr) :: handles(size(variables))
        integer :: i
        if (exists(self%handle, 'create: the optimizer', status)) return
        handles = [(variables(i)%handle, i=1, size(variables))]
        given = options
        given%struct_size = c_sizeof(given)
        status = c_create(handles, size(variables, kind=c_int32_t), given, self%handle)
    end subroutine

    ! Makes one step, with this replica's gradients of all variables, in a run. `norm` is the norm of the
    ! aggregated gradients before clipping. Either all replicas ask for it, or none. With max_staleness,
    ! `read_steps` is what `steps` gave before the parameters were pulled, and `dropped` is true if the
    ! gradients were too old.
    subroutine optimizer_apply(self, of, gradients, status, learning_rate, norm, read_steps, dropped)
        class(optimizer), intent(in) :: self
        class(replica), intent(inout) :: of
        type(tensor), intent(in) :: gradients(:)
        integer, intent(out), optional :: status
        real(c_double), intent(in), optional :: learning_rate
        real(c_double), intent(out), optional, target :: norm
        integer(c_int64_t), intent(in), optional :: read_steps
        logical, intent(out), optional :: dropped
        type(apply_options) :: options
        integer(c_int), target :: is_dropped
        integer(c_int) :: found
        if (present(norm)) norm = 0
        is_dropped = 0
        options = step_options(learning_rate, norm)
        if (present(dropped)) options%dropped = c_loc(is_dropped)
        if (present(read_steps)) then
            options%read_steps = read_steps
            options%has_read_steps = 1
        end if
        found = of%status
        if (found == 0) found = self%check('apply', gradients, self%num_variables())
        if (found == 0) found = c_apply(of%handle, self%handle, gradients, options)
        if (present(dropped)) dropped = is_dropped /= 0
        call of%keep(found, status)
    end subroutine

    ! Starts a part of a step, with the gradients of the variables from number `first` on, counted from 1. The
    ! arrays are asynchronous, and must stay until finish_apply has returned.
    subroutine optimizer_start_apply(self, of, first, gradients, status, learning_rate)
        class(optimizer), intent(in) :: self
        class(replica), intent(inout) :: of
        integer, intent(in) :: first
        type(tensor), intent(in) :: gradients(:)
        integer, intent(out), optional :: status
        real(c_double), intent(in), optional :: learning_rate
        integer(c_int) :: found
        found = of%status
        if (found == 0) found = self%check('start_apply', gradients, size(gradients))
        if (found == 0) found = c_start(of%handle, self%handle, int(first - 1, c_int32_t), &
                                        size(gradients, kind=c_int32_t), gradients, &
                                        step_options(learning_rate))
        call of%keep(found, status)
    end subroutine

    ! Finishes a step whose parts were started.
    subroutine optimizer_finish_apply(self, of, status, norm)
        class(optimizer), intent(in) :: self
        class(replica), intent(inout) :: of
        integer, intent(out), optional :: status
        real(c_double), intent(out), optional, target :: norm
        if (present(norm)) norm = 0
        if (ready(of%status, status)) &
            call of%keep(c_finish(of%handle, self%handle, step_options(norm=norm)), status)
    end subroutine

    function step_options(learning_rate, norm) result(options)
        real(c_double), intent(in), optional :: learning_rate
        real(c_double), intent(out), optional, target :: norm
        type(apply_options) :: options
        options%struct_size = c_sizeof(options)
        if (present(learning_rate)) then
            options%learning_rate = learning_rate
            options%has_learning_rate = 1
        end if
        if (present(norm)) options%norm = c_loc(norm)
    end function

    ! C reads as many gradients as there are variables.
    function optimizer_check(self, procedure, gradients, wanted) result(status)
        class(optimizer), intent(in) :: self
        character(*), intent(in) :: procedure
        type(tensor), intent(in) :: gradients(:)
        integer, intent(in) :: wanted
        integer(c_int) :: status
        character(100) :: text
        status = ditto_ok
        if (.not. c_associated(self%handle)) then
            status = failure(procedure//': there is no optimizer: create it first')
        else if (size(gradients) /= wanted) then
            write (text, '(i0, a, i0, a)') size(gradients), ' gradients for ', wanted, ' variables'
            status = failure(procedure//': '//text)
        else
            status = check_views(procedure, gradients)
        end if
    end function

    function optimizer_num_variables(self) result(n)
        class(optimizer), intent(in) :: self
        integer :: n, status
        type(optimizer_properties) :: found
        found%struct_size = c_sizeof(found)
        status = c_info(self%handle, found)
        n = int(found%num_variables)
    end function

    ! The number of steps so far. Outside of runs.
    subroutine optimizer_iterations(self, steps, status)
        class(optimizer), intent(in) :: self
        integer(c_int64_t), intent(out) :: steps
        integer, intent(out) :: status
        type(optimizer_properties) :: found
        type(variable) :: counter
        steps = 0
        found%struct_size = c_sizeof(found)
        status = c_info(self%handle, found)
        counter%handle = found%iterations
        if (status >= 0) call counter%read(steps, status)
    end subroutine

    ! The number of steps that have begun, in a run or in a function of a worker.
    subroutine optimizer_steps(self, of, steps, status)
        class(optimizer), intent(in) :: self
        class(replica), intent(inout) :: of
        integer(c_int64_t), intent(out) :: steps
        integer, intent(out), optional :: status
        steps = 0
        if (ready(of%status, status)) call of%keep(c_steps(of%handle, self%handle, steps), status)
    end subroutine

    ! The numbers that the rule keeps for the elements of variable `number`, for example those of name 'm'.
    ! They belong to the optimizer, so `v` must not be destroyed.
    subroutine optimizer_slot(self, number, name, v, status)
        class(optimizer), intent(in) :: self
        integer, intent(in) :: number
        character(*), intent(in) :: name
        type(variable), intent(inout) :: v
        integer, intent(out) :: status
        status = c_slot(self%handle, int(number - 1, c_int32_t), trim(name)//c_null_char, v%handle)
    end subroutine

    subroutine optimizer_destroy(self, status)
        class(optimizer), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine
end module
