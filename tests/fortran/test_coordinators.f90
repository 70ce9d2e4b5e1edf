! tests/fortran/test_coordinators.f90 - the Fortran module of workers, and parameters: what they return, what
! they refuse, and their C structs.
module worker_cases
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    use ditto
    use ditto_input
    use ditto_optimizers
    use ditto_coordinators
    implicit none
    integer :: failures = 0
    integer, parameter :: counts(4) = [1, 2, 3, 8]

    ! What functions get.
    type :: model
        integer :: kind = 0
        type(variable) :: w, gate, begun
        type(optimizer) :: o
        type(per_worker) :: own
        type(strategy) :: s
        type(coordinator) :: c
    end type

    interface
        subroutine c_sizes_of_workers(bytes) bind(c)
            import :: c_size_t
            integer(c_size_t), intent(out) :: bytes(*)
        end subroutine
        subroutine c_worker_values(values) bind(c)
            import :: c_int
            integer(c_int), intent(out) :: values(*)
        end subroutine
        function c_coordinator_options_are(o) bind(c) result(same)
            import
            type(coordinator_options), intent(in) :: o
            integer(c_int) :: same
        end function
        subroutine c_fill_worker(info, context) bind(c)
            import
            type(worker_info), intent(out) :: info
            type(input_context), intent(out) :: context
        end subroutine
        subroutine c_pause() bind(c)
        end subroutine
    end interface

contains

    subroutine check(condition, what)
        logical, intent(in) :: condition
        character(*), intent(in) :: what
        if (condition) return
        failures = failures + 1
        print '(4a)', 'wrong: ', what, ': ', error_message()
    end subroutine

    ! The call before has failed, and its message has `part`.
    subroutine refused(status, part)
        integer, intent(in) :: status
        character(*), intent(in) :: part
        call check(status < 0 .and. index(error_message(), part) /= 0, 'not refused with "'//part//'"')
    end subroutine

    subroutine structs_are_those_of_c()
        integer(c_size_t) :: bytes(3)
        integer(c_int) :: values(13)
        type(coordinator_options) :: o
        type(worker_info) :: w
        type(input_context) :: i
        call c_sizes_of_workers(bytes)
        call check(all(bytes == coordinator_sizes()), 'sizes')
        call c_worker_values(values)
        call check(all(values == [ditto_mirrored, ditto_central_storage, ditto_one_device, &
                                  ditto_parameter_server, ditto_scatter_add, ditto_scatter_sub, &
                                  ditto_scatter_mul, ditto_scatter_div, ditto_scatter_min, &
                                  ditto_scatter_max, ditto_scatter_update, ditto_max_function_name_bytes, &
                                  ditto_max_scheduled]), 'constants')
        ! Each component has a value of its own.
        o = coordinator_options(1, 2, 3)
        call check(c_coordinator_options_are(o) == 1, 'coordinator_options')
        call c_fill_worker(w, i)
        call check(w%struct_size == 1 .and. w%first_replica == 2 .and. w%num_replicas == 3 &
                   .and. w%is_retired == 4 .and. w%is_busy == 5 .and. w%functions == 6 &
                   .and. w%busy_ns == 7 .and. w%iterators == 8 .and. w%idle_ns == 9, 'worker_info')
        call check(i%num_pipelines == 10 .and. i%pipeline == 11 .and. i%num_replicas == 12, 'input_context')
    end subroutine

    ! -- functions of workers --

    ! Adds 1 to the elements of a parameter.
    subroutine add_one(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: one(6)
        one = 1
        select type (user)
        type is (model)
            call self%assign_add(user%w, one)
        end select
    end subroutine

    ! Gives its arguments back: a number by its number, and twice an array by a name or a number.
    subroutine echo(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real32) :: x(2, 3)
        real(real32), pointer :: seen(:, :)
        integer(int64) :: k
        type(tensor) :: view
        select type (user)
        type is (model)
            if (user%kind == 1) then
                call self%argument(k, 1)
                call self%argument(x, 2)
                call self%argument_view(view, number=2)
                call self%give(2*x, 1)
                call self%give(k, 2)
            else
                call self%argument(k, name='k')
                call self%argument(x, name='x')
                call self%argument_view(view, name='x')
                call self%give(2*x, name='twice x')
                call self%give(k, name='k')
            end if
            if (self%status /= 0) return
            call c_f_pointer(view%data, seen, extents(view))
            if (any(seen /= x)) call self%fail('the view has other elements')
        end select
    end subroutine

    ! Gives the square of its only argument, and its worker.
    subroutine square(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: x, again
        type(tensor) :: view
        associate (unused => user)
        end associate
        call self%argument(x)
        call self%argument(again, number=1)
        call self%argument_view(view)
        if (self%status /= 0) return
        if (again /= x .or. view%rank /= 0) call self%fail('the only argument has the number 1')
        if (self%worker() < 0 .or. self%num_replicas() /= 1) call self%fail('not in a worker')
        call self%give(x*x)
    end subroutine

    ! The status of a function may be positive.
    subroutine give_and_end(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        associate (unused => user)
        end associate
        call self%give([1, 2, 3])
        if (self%status == 0) self%status = ditto_end_of_input
    end subroutine

    subroutine fail_always(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        associate (unused => user)
        end associate
        call self%fail('this one fails', 7)
    end subroutine

    subroutine do_nothing(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        select type (user)
        type is (integer)
            if (user /= 0) call self%fail('a function without data got some')
        end select
    end subroutine

    ! Says that it has begun, and waits until the gate is open.
    subroutine wait_for_gate(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        integer(int32) :: open(1), one(1)
        one = 1
        select type (user)
        type is (model)
            call self%assign_add(user%begun, one)
            do while (self%status == 0)
                call self%pull(user%gate, open)
                if (open(1) /= 0) exit
                call c_pause()
            end do
        end select
    end subroutine

    ! The replicas of a worker work in step.
    subroutine sum_of_ids(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: x
        associate (unused => user)
        end associate
        x = self%id() + 1
        call self%all_reduce(x, ditto_sum)
        call self%give([x, real(self%id(), real64)])
    end subroutine

    ! Counts the functions of its worker.
    subroutine count_own(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(tensor) :: view
        real(real64), pointer :: own(:)
        select type (user)
        type is (model)
            call user%own%value(self, view)
            if (self%status /= 0) return
            call c_f_pointer(view%data, own, extents(view))
            own(2) = own(2) + 1
            call self%give([own(1), real(self%worker(), real64)])
        end select
    end subroutine

    ! Gives the first number of the next batch, and the number of the worker.
    subroutine next_row(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(iterator) :: steps
        type(batch) :: b
        integer(int64), pointer :: rows(:)
        integer :: status
        select type (user)
        type is (model)
            call user%own%iterator(self, steps)
            call steps%next(self, b, status)
            if (status /= ditto_ok) return
            call c_f_pointer(b%component(1)%data, rows, extents(b%component(1)))
            call self%give([rows(1), int(self%worker(), int64), b%rows])
        end select
    end subroutine

    ! The numbers of a worker: those from 100*worker on.
    subroutine numbers_of_worker(context, rows, user, status)
        type(input_context), intent(in) :: context
        type(dataset), intent(inout) :: rows
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        select type (user)
        type is (model)
            if (context%num_replicas /= context%num_pipelines) status = failure('another context')
            call rows%from_range(100_int64*context%pipeline, 100_int64*context%pipeline + 100, status)
            if (status == 0 .and. user%kind == 2) status = failure('no dataset today')
            if (status == 0) call rows%repeat(ditto_repeat_forever, status)
            if (status == 0) call rows%batch(4, status)
        end select
    end subroutine

    ! A step with the gradient 1, which can be too old.
    subroutine take_step(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64), target :: gradient(6)
        real(real64) :: norm
        integer(int64) :: steps
        logical :: dropped
        gradient = 1
        select type (user)
        type is (model)
            call user%o%steps(self, steps)
            call user%o%apply(self, [tensor_of(gradient)], norm=norm, read_steps=steps - user%kind, &
                              dropped=dropped)
            if (self%status == 0 .and. .not. dropped .and. abs(norm - sqrt(6d0)) > 1d-12) &
                call self%fail('another norm')
            call self%give(merge(1_int32, 0_int32, dropped))
        end select
    end subroutine

    ! Adds to rows, and looks up one of them.
    subroutine use_rows(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: added(2, 3), whole(2, 5), row(2, 1)
        integer(int64) :: versions(3)
        added = 1
        select type (user)
        type is (model)
            call self%scatter(user%w, ditto_scatter_add, [1_int64, 5_int64, 1_int64], added)
            call self%lookup(user%w, [5_int64], row)
            call self%pull(user%w, whole, versions=versions)
            if (self%status /= 0) return
            if (any(row < 6)) call self%fail('the row has no update')
            if (versions(1) < 1 .or. versions(2) /= 0) call self%fail('other versions')
            call self%give(whole)
        end select
    end subroutine

    ! What is refused in functions.
    subroutine misuse(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: x(6), part(4)
        real(real32) :: single
        integer(int64) :: versions(1)
        integer :: status
        select type (user)
        type is (model)
            select case (user%kind)
            case (1)
                call self%argument(single)
            case (2)
                call self%argument(x, 0)
            case (3)
                call self%argument(x, 1, 'x')
            case (4)
                call self%argument(x, name=repeat('x', 400))
            case (5)
                call self%argument(x, name='none')
            case (6)
                call self%give(part(1:4:2))
            case (7)
                call self%pull(user%w, part)
            case (8)
                call self%pull(user%w, x, versions=versions(1:0))
            case (9)
                call self%lookup(user%w, [0_int64], x(1:1))
            case (10)
                call self%scatter(user%w, ditto_scatter_add, [1_int64, 7_int64], x(1:2))
            case (11)
                call self%lookup(user%w, [1_int64], x(1:2))
            case (12)
                call user%c%schedule('misuse', status)
                call self%keep(status)
            case (13)
                call user%c%join(status)
                call self%keep(status)
            case (14)
                call user%o%apply(self, [tensor_of(x(1:5:2))])
            case (15)
                call self%give(x, number=-1)
            end select
        end select
    end subroutine

    ! -- tests --

    ! Creates a strategy, and a coordinator with a queue of this capacity.
    subroutine start(m, workers, capacity, each)
        type(model), intent(inout) :: m
        integer, intent(in) :: workers, capacity, each
        type(strategy_options) :: options
        type(coordinator_options) :: of_queue
        integer :: status
        options%replicas_per_worker = int(each, c_int32_t)
        call m%s%create(workers*each, status, options, ditto_parameter_server)
        call check(status == 0, 'create a strategy')
        of_queue%queue_capacity = int(capacity, c_int32_t)
        call m%c%create(m%s, status, of_queue)
        call check(status == 0 .and. m%c%num_workers() == workers, 'create a coordinator')
    end subroutine

    subroutine finish(m)
        type(model), intent(inout) :: m
        integer :: status
        call m%c%destroy(status)
        call check(status == 0, 'destroy a coordinator')
        if (c_associated(m%o%handle)) call m%o%destroy(status)
        if (c_associated(m%w%handle)) call m%w%destroy(status)
        if (c_associated(m%gate%handle)) call m%gate%destroy(status)
        if (c_associated(m%begun%handle)) call m%begun%destroy(status)
        call check(status == 0, 'destroy what belongs to the strategy')
        call m%s%destroy(status)
        call check(status == 0, 'destroy a strategy')
    end subroutine

    subroutine named(f, name, procedure, m)
        type(worker_function), intent(inout), target :: f
        character(*), intent(in) :: name
        procedure(user_procedure) :: procedure
        type(model), intent(inout), target :: m
        integer :: status
        f%function => procedure
        f%user => m
        call register_function(name, f, status)
        call check(status == 0, 'register '//name)
    end subroutine

    subroutine forget(name)
        character(*), intent(in) :: name
        integer :: status
        call unregister_function(name, status)
        call check(status == 0, 'unregister '//name)
    end subroutine

    subroutine functions_are_executed_once(n)
        integer, intent(in) :: n
        integer, parameter :: times = 50
        type(model), target :: m
        type(worker_function), target :: f
        type(worker_info) :: info
        real(real64) :: w(6)
        integer(int64) :: functions
        integer :: i, status
        logical :: ended
        call start(m, n, 8, 1)
        w = 0
        call m%s%create_variable(w, m%w, status)
        call named(f, 'add_one', add_one, m)
        call register_function('add_one', f, status)
        call check(status == 0, 'register the same object again')
        do i = 1, times
            call m%c%schedule('add_one', status)
            call check(status == 0, 'schedule')
        end do
        call m%c%join(status)
        call check(status == 0, 'join')
        call m%c%done(ended, status)
        call check(status == 0 .and. ended, 'done')
        call m%w%read(w, status)
        call check(status == 0 .and. all(w == times), 'the sum of all functions')
        functions = 0
        do i = 0, n - 1
            call m%c%worker_info(i, info, status)
            call check(status == 0 .and. info%first_replica == i .and. info%num_replicas == 1 &
                       .and. info%is_retired == 0, 'worker_info')
            functions = functions + info%functions
        end do
        call check(functions == times, 'the number of functions')
        call m%c%worker_info(n, info, status)
        call check(status == ditto_err_range, 'no such worker')
        call forget('add_one')
        call finish(m)
    end subroutine

    subroutine arguments_and_results(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: of_echo, of_square, of_end
        type(serve_function), target :: unprepared
        type(remote) :: r(10), two
        type(tensor) :: view
        real(real64) :: x, y
        real(real32) :: matrix(2, 3), twice(2, 3)
        integer(int64) :: k, found
        integer(int32) :: three(3)
        integer :: i, status
        logical :: complete
        call start(m, n, 16, 1)
        call named(of_square, 'square', square, m)
        do i = 1, 10
            x = i
            call m%c%schedule('square', status, r(i), [tensor_of(x)])
            x = -1 ! arguments were copied
        end do
        do i = 1, 10
            call r(i)%result(y, status)
            call check(status == 0 .and. y == i*i, 'a square')
            call r(i)%test(complete, status)
            call check(status == 0 .and. complete, 'test')
        end do
        call r(1)%result(matrix, status)
        call refused(status, 'result: the array has another type or size')
        call r(1)%result(y, status, name='loss')
        call check(status < 0, 'no such result')
        call r(1)%result(y, status, replica_id=-1)
        call refused(status, 'result: the id of the replica is below 0')
        call serve(m%s, status)
        call refused(status, 'this is host 0, or the only host')
        call serve(m%s, status, unprepared)
        call refused(status, 'serve: the serve_function has no function')
        call m%c%schedule('square', status, r(1), [tensor_of(x)])
        call refused(status, 'destroy it first')
        call r(1)%cancel(status)
        call check(status == ditto_err_busy, 'a function that has ended cannot be cancelled')
        do i = 1, 10
            call r(i)%destroy(status)
            call check(status == 0, 'destroy')
        end do
        ! Several arguments and results, by number and by name.
        call named(of_echo, 'echo', echo, m)
        matrix = reshape([1., 2., 3., 4., 5., 6.], [2, 3])
        k = 12
        m%kind = 1
        call m%c%schedule('echo', status, two, [tensor_of(k), tensor_of(matrix)])
        call two%result(twice, status, 1)
        call check(status == 0 .and. all(twice == 2*matrix), 'a result by number')
        call two%result(found, status, number=2)
        call check(status == 0 .and. found == 12, 'another one')
        call two%result_view(view, status, 1)
        call check(status == 0 .and. view%dtype == ditto_f32 .and. all(extents(view) == [2, 3]), 'a view')
        call two%destroy(status)
        m%kind = 2
        call m%c%schedule('echo', status, two, [tensor_of(matrix), tensor_of(k)], ['x', 'k'])
        call two%fetch(status)
        call check(status == 0, 'fetch')
        call two%result(twice, status, name='twice x')
        call check(status == 0 .and. all(twice == 2*matrix), 'a result by name')
        call two%result_view(view, status, name='k')
        call elements_of(view, found, status)
        call check(status == 0 .and. found == 12, 'the view of another one')
        call two%result(found, status, number=1, name='k')
        call refused(status, 'give one of them')
        call two%destroy(status)
        ! A positive status comes with the results.
        call named(of_end, 'give_and_end', give_and_end, m)
        call m%c%schedule('give_and_end', status, two)
        call two%result(three, status)
        call check(status == ditto_end_of_input .and. all(three == [1, 2, 3]), 'a positive status')
        call two%fetch(status)
        call check(status == ditto_end_of_input, 'the same status again')
        call m%c%join(status)
        call check(status == 0, 'a positive status is no error')
        ! The results stay valid after the coordinator, and the handle after the strategy.
        call forget('square')
        call forget('echo')
        call forget('give_and_end')
        call m%c%destroy(status)
        three = 0
        call two%result(three, status)
        call check(status == ditto_end_of_input .and. three(3) == 3, 'results that were kept')
        call finish(m)
        call two%result(three, status)
        call check(status == ditto_err_context, 'results after the strategy')
        call two%destroy(status)
        call check(status == 0, 'destroy the result last')
    end subroutine

    subroutine errors_of_functions(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: f, g
        type(remote) :: r
        integer :: status
        logical :: ended
        call start(m, n, 8, 1)
        call named(f, 'fail_always', fail_always, m)
        g%function => do_nothing
        call register_function('do_nothing', g, status)
        call check(status == 0, 'a function without data')
        call m%c%schedule('fail_always', status, r)
        call r%fetch(status)
        call refused(status, 'this one fails')
        call r%fetch(status)
        call refused(status, 'this one fails')
        call m%c%join(status)
        call refused(status, 'this one fails')
        call check(status == ditto_err_user, 'the status of the function')
        call m%c%join(status)
        call check(status == 0, 'an error is returned once')
        call r%destroy(status)
        call m%c%schedule('fail_always', status)
        call check(status == 0, 'the coordinator works as before')
        ended = .false.
        do while (.not. ended)
            call m%c%done(ended, status)
            if (status < 0) exit
            call c_pause()
        end do
        call refused(status, 'this one fails')
        call m%c%schedule('do_nothing', status, r)
        call r%fetch(status)
        call check(status == 0, 'a function without results')
        call r%result(ended, status)
        call refused(status, 'gave no result')
        call r%destroy(status)
        call m%c%schedule('nobody', status)
        call check(status == ditto_err_not_found, 'no such function')
        call forget('fail_always')
        call forget('do_nothing')
        call finish(m)
    end subroutine

    subroutine a_full_queue(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: f
        type(remote) :: last
        integer(int32) :: number(1)
        integer :: i, status
        call start(m, n, 2, 1)
        number = 0
        call m%s%create_variable(number, m%gate, status)
        call m%s%create_variable(number, m%begun, status)
        call named(f, 'wait_for_gate', wait_for_gate, m)
        do i = 1, n
            call m%c%schedule('wait_for_gate', status)
        end do
        do while (status == 0 .and. number(1) < n)
            call m%begun%read(number, status)
            call c_pause()
        end do
        call check(status == 0, 'all workers are busy')
        call m%c%schedule('wait_for_gate', status, no_wait=.false.)
        call check(status == 0, 'the first one in the queue')
        call m%c%schedule('wait_for_gate', status, last, no_wait=.true.)
        call check(status == 0, 'the second one in the queue')
        call m%c%schedule('wait_for_gate', status, no_wait=.true.)
        call check(status == ditto_pending, 'a full queue')
        call last%cancel(status)
        call check(status == 0, 'cancel')
        number = 1
        call m%gate%assign(number, status)
        call m%c%join(status)
        call check(status == 0, 'join')
        call last%fetch(status)
        call check(status == ditto_err_cancelled, 'a function that was cancelled')
        call last%destroy(status)
        call m%begun%read(number, status)
        call check(number(1) == n + 1, 'the others were executed')
        call forget('wait_for_gate')
        call finish(m)
    end subroutine

    subroutine replicas_of_a_worker_work_in_step()
        type(model), target :: m
        type(worker_function), target :: f
        type(remote) :: r
        real(real64) :: x(2)
        integer :: id, status
        call start(m, 2, 4, 3)
        call named(f, 'sum_of_ids', sum_of_ids, m)
        call m%c%schedule('sum_of_ids', status, r)
        do id = 0, 2
            call r%result(x, status, replica_id=id)
            call check(status == 0 .and. all(x == [6, id]), 'the result of a replica')
        end do
        call r%result(x, status)
        call check(status < 0, 'each replica gives a result')
        call r%result(x, status, replica_id=3)
        call check(status < 0, 'no such replica')
        call r%destroy(status)
        call forget('sum_of_ids')
        call finish(m)
    end subroutine

    subroutine values_of_workers(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: f
        type(remote) :: r(20)
        real(real64), allocatable, target :: initial(:, :)
        real(real64) :: found(2)
        integer :: i, status
        call start(m, n, 32, 1)
        allocate (initial(2, 0:n - 1))
        do i = 0, n - 1
            initial(:, i) = [10*i, 0]
        end do
        call m%own%create_values(m%c, [tensor_of(initial)], status)
        if (n /= 1) call refused(status, 'create_values: 1 arrays for')
        call m%own%create_values(m%c, [(tensor_of(initial(1:2:2, i)), i=0, n - 1)], status)
        call check(status == 0, 'one element')
        call m%own%create_values(m%c, [(tensor_of(initial(:, i)), i=0, n - 1)], status)
        call check(status == 0, 'create_values')
        initial = 0
        call named(f, 'count_own', count_own, m)
        do i = 1, 20
            call m%c%schedule('count_own', status, r(i))
        end do
        do i = 1, 20
            call r(i)%result(found, status)
            call check(status == 0 .and. found(1) == 10*found(2), 'the value of the worker')
            call r(i)%destroy(status)
        end do
        call forget('count_own')
        call finish(m)
    end subroutine

    subroutine datasets_of_workers(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(dataset_function), target :: of_worker, empty
        type(worker_function), target :: f
        type(worker_info) :: info
        type(input_options) :: options
        type(remote) :: r(20)
        integer(int64) :: found(3), iterators
        integer :: i, status
        call start(m, n, 32, 1)
        of_worker%function => numbers_of_worker
        of_worker%user => m
        call m%own%create_iterators(m%c, empty, status)
        call refused(status, 'has no function')
        options%global_batch = -1
        call m%own%create_iterators(m%c, of_worker, status, options)
        call refused(status, 'is negative')
        options%global_batch = 0
        options%num_pipelines = 2
        call m%own%create_iterators(m%c, of_worker, status, options)
        call refused(status, 'num_pipelines')
        options%num_pipelines = 0
        call m%own%create_iterators(m%c, of_worker, status, options)
        call check(status == 0, 'create_iterators')
        call named(f, 'next_row', next_row, m)
        do i = 1, 20
            call m%c%schedule('next_row', status, r(i))
        end do
        do i = 1, 20
            call r(i)%result(found, status)
            call check(status == 0 .and. found(1)/100 == found(2) .and. mod(found(1), 4_int64) == 0 &
                       .and. found(3) == 4, 'a batch of the worker')
            call r(i)%destroy(status)
        end do
        iterators = 0
        do i = 0, n - 1
            call m%c%worker_info(i, info, status)
            iterators = iterators + info%iterators
        end do
        call check(iterators >= 1 .and. iterators <= n, 'the number of iterators')
        ! A dataset that cannot be made counts as a function that failed.
        m%kind = 2
        call m%own%create_iterators(m%c, of_worker, status)
        call m%c%schedule('next_row', status)
        call m%c%join(status)
        call refused(status, 'no dataset today')
        call forget('next_row')
        call finish(m)
    end subroutine

    subroutine steps_with_an_optimizer(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: f
        type(optimizer_options) :: options
        type(remote) :: r
        real(real64) :: w(6)
        integer(int32) :: dropped
        integer(int64) :: versions(2)
        integer :: i, status
        call start(m, n, 64, 1)
        w = 0
        call m%s%create_variable(w, m%w, status, shards=2)
        call check(status == 0 .and. m%w%num_shards() == 2, 'two shards')
        options%rule = ditto_rule_sgd
        options%learning_rate = 0.5d0
        options%accumulate = 2
        options%max_staleness = 20 ! so the first 20 steps and the next 5 cannot be too old
        options%has_max_staleness = 1
        call m%o%create([m%w], options, status)
        call check(status == 0, 'an optimizer')
        call named(f, 'take_step', take_step, m)
        do i = 1, 40
            call m%c%schedule('take_step', status)
        end do
        call m%c%join(status)
        call check(status == 0, 'join')
        call m%w%read(w, status)
        call check(all(w == -20), 'two gradients are one step')
        call m%w%versions(versions, status)
        call check(status == 0 .and. all(versions == 20), 'versions')
        do i = 1, 10
            call m%c%schedule('take_step', status)
        end do
        call m%c%join(status)
        ! Gradients of parameters that are too old.
        m%kind = 21
        call m%c%schedule('take_step', status, r)
        call r%result(dropped, status)
        call check(status == 0 .and. dropped == 1, 'dropped')
        call r%destroy(status)
        call m%c%join(status)
        call m%w%read(w, status)
        call check(status == 0 .and. all(w == -25), 'no step')
        call forget('take_step')
        call finish(m)
    end subroutine

    subroutine rows_of_parameters(n)
        integer, intent(in) :: n
        type(model), target :: m
        type(worker_function), target :: f
        type(remote) :: r
        real(real64) :: w(2, 5), two(2, 2)
        integer(int64) :: versions(3), few(1)
        integer :: i, status
        call start(m, n, 16, 1)
        w = 5
        call m%s%create_variable(w, m%w, status, shards=3)
        call named(f, 'use_rows', use_rows, m)
        do i = 1, 10
            call m%c%schedule('use_rows', status)
        end do
        call m%c%join(status)
        call check(status == 0, 'rows in functions')
        call m%w%lookup([5_int64, 1_int64], two, status)
        call check(status == 0 .and. all(two(:, 1) == 15) .and. all(two(:, 2) == 25), 'lookup')
        call m%w%scatter(ditto_scatter_update, [2_int64], two(:, 1), status)
        call m%w%read(w, status)
        call check(all(w(:, 2) == 15) .and. all(w(:, 3) == 5), 'scatter')
        call m%w%versions(versions, status)
        call check(status == 0 .and. all(versions == [11, 0, 10]), 'versions')
        call m%w%versions(few, status)
        call check(status == 0 .and. few(1) == 11, 'the first version')
        call m%c%schedule('use_rows', status, r)
        call r%result(w, status)
        call check(status == 0 .and. all(w(:, 1) == 27), 'a pull')
        call r%destroy(status)
        call m%w%lookup([6_int64], two(:, 1), status)
        call refused(status, 'lookup: row 6 is not there: the variable has the rows 1 to 5')
        call m%w%scatter(ditto_scatter_add, [-1_int64], two(:, 1), status)
        call refused(status, 'scatter: row -1 is not there')
        call m%w%lookup([1_int64], two, status)
        call refused(status, 'lookup: the array has another type or size')
        call m%w%lookup([integer(int64) ::], two(:, 1:0), status)
        call check(status == 0, 'no rows')
        call forget('use_rows')
        call finish(m)
    end subroutine

    ! Rows of mirrored variables, in a run.
    subroutine scatter_in_step(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: row(2, 1)
        row = 1
        select type (user)
        type is (model)
            call self%scatter(user%w, ditto_scatter_add, [int(self%id() + 1, int64)], row)
            call self%lookup(user%w, [1_int64], row)
            if (any(row /= 1)) call self%fail('another row')
            if (self%worker() /= -1) call self%fail('a worker in a run')
        end select
    end subroutine

    subroutine rows_of_mirrored_variables(n)
        integer, intent(in) :: n
        type(model), target :: m
        real(real64) :: w(2, 9)
        integer(int64) :: versions(1)
        integer :: status
        call m%s%create(n, status)
        w = 0
        call m%s%create_variable(w, m%w, status, aggregation=ditto_aggregate_sum)
        call m%s%run(scatter_in_step, m, status)
        call check(status == 0, 'rows in a run')
        call m%w%read(w, status)
        call check(all(w(:, :n) == 1) .and. all(w(:, n + 1:) == 0), 'a row of each replica')
        call m%w%versions(versions, status)
        call check(status == ditto_err_invalid, 'only parameters have versions')
        call m%c%create(m%s, status)
        call check(status == ditto_err_invalid, 'a coordinator of a mirrored strategy')
        call m%w%destroy(status)
        call m%s%destroy(status)
        call check(status == 0, 'destroy')
    end subroutine

    subroutine misused(m, kind, part, arguments)
        type(model), intent(inout), target :: m
        integer, intent(in) :: kind
        character(*), intent(in) :: part
        type(tensor), intent(in), optional :: arguments(:)
        integer :: status
        m%kind = kind
        call m%c%schedule('misuse', status, arguments=arguments)
        call check(status == 0, 'schedule what is refused later')
        call m%c%join(status)
        call refused(status, part)
    end subroutine

    subroutine bad_input()
        type(model), target :: m
        type(worker_function), target :: f, g, nobody
        type(coordinator_options) :: options
        type(coordinator) :: none
        type(optimizer_options) :: rule
        type(strategy) :: other
        type(remote) :: r
        real(real64) :: w(6)
        real(real64), target :: x(6)
        integer :: i, status
        call start(m, 2, 4, 1)
        w = 0
        x = 1
        call m%s%create_variable(w, m%w, status, shards=0)
        call refused(status, 'create_variable: the number of shards is below 1')
        call m%s%create_variable(w, m%w, status, shards=2)
        rule%rule = ditto_rule_sgd
        rule%learning_rate = 1
        call m%o%create([m%w], rule, status)
        call register_function('misuse', nobody, status)
        call refused(status, 'has no function')
        call named(f, 'misuse', misuse, m)
        g%function => misuse
        call register_function('misuse', g, status)
        call check(status == ditto_err_invalid, 'another function of this name')
        call register_function('', g, status)
        call check(status == ditto_err_invalid, 'an empty name')
        call register_function(repeat('n', ditto_max_function_name_bytes + 1), g, status)
        call check(status == ditto_err_range, 'a long name')
        call unregister_function('nobody', status)
        call check(status == ditto_err_not_found, 'no such name')
        call misused(m, 1, 'argument: the array has another type or size', [tensor_of(x)])
        call misused(m, 2, 'argument: the number is below 1', [tensor_of(x)])
        call misused(m, 3, 'argument: the number is given together with a name', [tensor_of(x)])
        call misused(m, 4, 'argument: the name is too long', [tensor_of(x)])
        call misused(m, 5, 'none', [tensor_of(x)])
        call misused(m, 6, 'give: the array is not contiguous')
        call misused(m, 7, 'pull: the array has another type or size')
        call misused(m, 8, 'pull: the variable has more shards than versions has elements')
        call misused(m, 9, 'lookup: row 0 is not there')
        call misused(m, 10, 'scatter: row 7 is not there')
        call misused(m, 11, 'lookup: the array has another type or size')
        call misused(m, 12, 'cross-replica context')
        call misused(m, 13, 'cross-replica context')
        call misused(m, 14, 'the array is not contiguous')
        call misused(m, 15, 'give: the number is below 1')
        call m%c%create(m%s, status)
        call refused(status, 'destroy it first')
        call none%create(m%s, status)
        call check(status == ditto_err_busy, 'a second coordinator')
        options%max_attempts = -1
        call none%create(m%s, status, options)
        call refused(status, 'is negative')
        options%max_attempts = 0
        options%queue_capacity = ditto_max_scheduled + 1
        call none%create(m%s, status, options)
        call check(status == ditto_err_range, 'a long queue')
        call none%create(other, status)
        call check(status < 0, 'no strategy')
        call none%schedule('misuse', status)
        call refused(status, 'create it first')
        call none%join(status)
        call check(status == ditto_err_invalid .and. none%num_workers() == 0, 'join without a coordinator')
        call none%destroy(status)
        call check(status == 0, 'destroy without a coordinator')
        call r%fetch(status)
        call check(status == ditto_err_invalid, 'fetch without a function')
        call r%destroy(status)
        call check(status == 0, 'destroy without a function')
        call m%c%schedule('misuse', status, arguments=[tensor_of(x(1:5:2))])
        call refused(status, 'the array is not contiguous')
        call m%c%schedule('misuse', status, arguments=[tensor_of(x)], names=['a', 'b'])
        call refused(status, 'as many names as arguments')
        call m%c%schedule('misuse', status, names=['a'])
        call refused(status, 'as many names as arguments')
        call m%c%schedule('misuse', status, arguments=[tensor_of(x), tensor_of(x)], names=['a', ' '])
        call refused(status, 'a name of an argument is empty')
        call m%c%schedule('misuse', status, arguments=[tensor_of(x), tensor_of(x)], names=['a', 'a'])
        call check(status == ditto_err_invalid, 'equal names')
        call m%c%schedule('misuse', status, arguments=[(tensor_of(x), i=1, 33)])
        call refused(status, 'more than 32')
        call m%s%run(misuse, m, status)
        call check(status == ditto_err_unsupported, 'a run of workers')
        call m%s%destroy(status)
        call check(status == ditto_err_busy, 'the strategy has a coordinator')
        call other%create(2, status, kind=77)
        call check(status < 0, 'an unknown kind')
        call forget('misuse')
        call finish(m)
    end subroutine
end module

program test_coordinators
    use worker_cases
    implicit none
    integer :: i
    call structs_are_those_of_c()
    do i = 1, size(counts)
        call functions_are_executed_once(counts(i))
        call arguments_and_results(counts(i))
        call errors_of_functions(counts(i))
        call a_full_queue(counts(i))
        call values_of_workers(counts(i))
        call datasets_of_workers(counts(i))
        call steps_with_an_optimizer(counts(i))
        call rows_of_parameters(counts(i))
        call rows_of_mirrored_variables(counts(i))
    end do
    call replicas_of_a_worker_work_in_step()
    call bad_input()
    print '(i0, a)', failures, ' failures'
    if (failures /= 0) stop 1
end program
