! src/fortran/ditto_coordinators.f90 - workers that do not wait for each other, in Fortran.
!
! The workers of a strategy of kind ditto_parameter_server take functions from the queue of a coordinator. A
! function is a procedure as that of a run, with a name. It pulls parameters, computes, and pushes updates:
!
!     step%function => take_step              ! type(worker_function), target, save :: step
!     step%user => model
!     call register_function('step', step, status)
!     call s%create(4, status, kind=ditto_parameter_server)
!     call c%create(s, status)
!     do i = 1, 1000
!         call c%schedule('step', status)
!     end do
!     call c%join(status)
!
! Arguments and results are arrays, which are copied:
!
!     call c%schedule('score', status, r, [tensor_of(rate), tensor_of(rows)])
!     call r%result(loss, status)
!
! and in the procedure:
!
!     call self%argument(rate, 1)
!     call self%give(loss)
!
! The rules are those of the C headers ditto/coordinator.h and ditto/parameter.h. Workers are counted from 0,
! as replicas are. Arguments and results are counted from 1.
module ditto_coordinators
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_input
    implicit none
    private

    public :: coordinator, coordinator_options, remote, worker_info, worker_function, per_worker
    public :: dataset_function, dataset_procedure, input_context, coordinator_sizes
    public :: register_function, unregister_function, serve, serve_function, serve_procedure

    integer(c_int), parameter, public :: ditto_max_function_name_bytes = 63, ditto_max_scheduled = 1048576

    ! -- types --

    ! The options of a coordinator, as ditto_coordinator_options has them. The components have their defaults.
    type, bind(c) :: coordinator_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: queue_capacity = 0
        integer(c_int32_t) :: max_attempts = 0
    end type

    ! What a coordinator knows about a worker, as ditto_worker_info.
    type, bind(c) :: worker_info
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: first_replica = 0
        integer(c_int32_t) :: num_replicas = 0
        integer(c_int) :: is_retired = 0
        integer(c_int) :: is_busy = 0
        integer(c_int64_t) :: functions = 0
        integer(c_int64_t) :: busy_ns = 0
        integer(c_int64_t) :: iterators = 0
        integer(c_int64_t) :: idle_ns = 0
    end type

    ! Which dataset is asked for, as ditto_input_context. `pipeline` is the number of the worker,
    ! `num_pipelines` that of all workers, and `num_replicas` that of all their replicas.
    type, bind(c) :: input_context
        integer(c_int32_t) :: num_pipelines = 0
        integer(c_int32_t) :: pipeline = 0
        integer(c_int32_t) :: num_replicas = 0
    end type

    ! The procedure of a function with a name, and what it gets. The object has the attribute target, and must
    ! exist until the name was taken back and all functions that were scheduled with it have ended. It may be
    ! executed on several workers at the same time, with one and the same `user`.
    type :: worker_function
        procedure(user_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
    end type

    ! A procedure that makes the dataset `rows` of a worker. Its batch is that of one replica. `status` is 0,
    ! or the result of `failure`. It runs on the threads of workers, several at a time.
    abstract interface
        subroutine dataset_procedure(context, rows, user, status)
            import :: input_context, dataset, c_int
            type(input_context), intent(in) :: context
            type(dataset), intent(inout) :: rows
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine
    end interface

    ! The procedure that makes the datasets of workers, and what it gets. The object has the attribute target,
    ! and must exist as long as the coordinator.
    type :: dataset_function
        procedure(dataset_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
    end type

    ! The result of a scheduled function, which may not be there yet. It is destroyed by destroy.
    type :: remote
        type(c_ptr) :: handle = c_null_ptr
        type(c_ptr), private :: results = c_null_ptr
        integer, private :: status = 0
        logical, private :: is_fetched = .false.
    contains
        procedure, non_overridable :: fetch => remote_fetch
        procedure, non_overridable :: result => remote_result
        procedure, non_overridable :: result_view => remote_result_view
        procedure, non_overridable :: test => remote_test
        procedure, non_overridable :: cancel => remote_cancel
        procedure, non_overridable :: destroy => remote_destroy
    end type

    ! The queue of a strategy, and its workers. It is destroyed by destroy, before the strategy.
    type :: coordinator
        type(c_ptr) :: handle = c_null_ptr
        type(c_ptr), private :: strategy = c_null_ptr
    contains
        procedure, non_overridable :: create => coordinator_create
        procedure, non_overridable :: schedule => coordinator_schedule
        procedure, non_overridable :: join => coordinator_join
        procedure, non_overridable :: done => coordinator_done
        procedure, non_overridable :: num_workers => coordinator_num_workers
        procedure, non_overridable :: worker_info => coordinator_worker_info
        procedure, non_overridable :: destroy => coordinator_destroy
    end type

    ! What prepares a host for functions that come from host 0: it makes the per-worker values and datasets of
    ! this host, with the coordinator, which can do nothing else. `status` is 0, or the result of `failure`.
    abstract interface
        subroutine serve_procedure(c, user, status)
            import :: coordinator, c_int
            type(coordinator), intent(in) :: c
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine
    end interface

    ! The procedure that prepares a host, and what it gets. The object has the attribute target.
    type :: serve_function
        procedure(serve_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
    end type

    ! What `serve` passes through C.
    type :: serving
        type(serve_function), pointer :: function => null()
        type(c_ptr) :: strategy = c_null_ptr
    end type

    ! A value, or an iterator, for each worker. It belongs to the coordinator, and ends with it.
    type :: per_worker
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: create_values => per_worker_create_values
        procedure, non_overridable :: create_iterators => per_worker_create_iterators
        procedure, non_overridable :: value => per_worker_value
        procedure, non_overridable :: iterator => per_worker_iterator
    end type

    ! -- C --

    interface
        function c_register(name, function, user) bind(c, name='ditto_function_register') result(status)
            import
            character(kind=c_char), intent(in) :: name(*)
            type(c_funptr), value :: function
            type(c_ptr), value :: user
            integer(c_int) :: status
        end function
        function c_unregister(name) bind(c, name='ditto_function_unregister') result(status)
            import
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int) :: status
        end function
        function c_create(s, options, out) bind(c, name='ditto_coordinator_create') result(status)
            import
            type(c_ptr), value :: s
            type(coordinator_options), intent(in) :: options
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_destroy(c) bind(c, name='ditto_coordinator_destroy') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int) :: status
        end function
        function c_serve(s, prepare, user) bind(c, name='ditto_serve') result(status)
            import
            type(c_ptr), value :: s, user
            type(c_funptr), value :: prepare
            integer(c_int) :: status
        end function
        function c_schedule(c, s, name, arguments, n, names, no_wait, out) bind(c, name='ditto_f_schedule') &
            result(status)
            import
            type(c_ptr), value :: c, s, out
            character(kind=c_char), intent(in) :: name(*), names(*)
            type(tensor), intent(in) :: arguments(*)
            integer(c_size_t), value :: n
            integer(c_int), value :: no_wait
            integer(c_int) :: status
        end function
        function c_join(c) bind(c, name='ditto_coordinator_join') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int) :: status
        end function
        function c_done(c, done) bind(c, name='ditto_coordinator_done') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int), intent(inout) :: done
            integer(c_int) :: status
        end function
        function c_num_workers(c) bind(c, name='ditto_coordinator_num_workers') result(n)
            import
            type(c_ptr), value :: c
            integer(c_int32_t) :: n
        end function
        function c_worker_info(c, worker, out) bind(c, name='ditto_coordinator_worker_info') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int32_t), value :: worker
            type(worker_info), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_fetch(r, out) bind(c, name='ditto_remote_fetch') result(status)
            import
            type(c_ptr), value :: r
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_result(results, number, name, replica_id, x) bind(c, name='ditto_f_result') result(status)
            import
            type(c_ptr), value :: results
            integer(c_int), value :: number, replica_id
            character(kind=c_char), intent(in) :: name(*)
            type(*), dimension(..) :: x
            integer(c_int) :: status
        end function
        function c_result_view(results, number, name, replica_id, view) bind(c, name='ditto_f_result_view') &
            result(status)
            import
            type(c_ptr), value :: results
            integer(c_int), value :: number, replica_id
            character(kind=c_char), intent(in) :: name(*)
            type(tensor), intent(inout) :: view
            integer(c_int) :: status
        end function
        function c_test(r, done) bind(c, name='ditto_remote_test') result(status)
            import
            type(c_ptr), value :: r
            integer(c_int), intent(inout) :: done
            integer(c_int) :: status
        end function
        function c_cancel(r) bind(c, name='ditto_remote_cancel') result(status)
            import
            type(c_ptr), value :: r
            integer(c_int) :: status
        end function
        function c_remote_destroy(r) bind(c, name='ditto_remote_destroy') result(status)
            import
            type(c_ptr), value :: r
            integer(c_int) :: status
        end function
        function c_value_destroy(v) bind(c, name='ditto_value_destroy') result(status)
            import
            type(c_ptr), value :: v
            integer(c_int) :: status
        end function
        function c_create_values(c, function, user, out) &
            bind(c, name='ditto_coordinator_values_from_function') result(status)
            import
            type(c_ptr), value :: c, user
            type(c_funptr), value :: function
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_create_iterators(c, function, user, options, out) &
            bind(c, name='ditto_coordinator_datasets_from_function') result(status)
            import
            type(c_ptr), value :: c, user
            type(c_funptr), value :: function
            type(input_options), intent(in) :: options
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_value(self, p, view) bind(c, name='ditto_worker_value') result(status)
            import
            type(c_ptr), value :: self, p
            type(tensor), intent(inout) :: view
            integer(c_int) :: status
        end function
        function c_iterator(self, p, out) bind(c, name='ditto_worker_iterator') result(status)
            import
            type(c_ptr), value :: self, p
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
    end interface

    ! What a procedure gets if the program gives nothing.
    integer, target, save :: nothing = 0

contains

    ! The bytes of the types that C has too, for a test.
    function coordinator_sizes() result(bytes)
        integer(c_size_t) :: bytes(3)
        type(coordinator_options) :: options
        type(worker_info) :: info
        type(input_context) :: context
        bytes = [c_sizeof(options), c_sizeof(info), c_sizeof(context)]
    end function

    ! -- functions with names --

    ! Registers a function under a name, which belongs to the whole program. Registering the same object again
    ! has no effect.
    subroutine register_function(name, function, status)
        character(*), intent(in) :: name
        type(worker_function), intent(inout), target :: function
        integer, intent(out) :: status
        if (.not. associated(function%function)) then
            status = failure('register_function: the worker_function has no function')
            return
        end if
        if (.not. associated(function%user)) function%user => nothing
        status = c_register(trim(name)//c_null_char, c_funloc(on_worker), c_loc(function))
    end subroutine

    ! Takes a name back. Functions that were scheduled before are executed nevertheless.
    subroutine unregister_function(name, status)
        character(*), intent(in) :: name
        integer, intent(out) :: status
        status = c_unregister(trim(name)//c_null_char)
    end subroutine

    ! What C calls on each replica of a worker.
    function on_worker(handle, user) bind(c) result(status)
        type(c_ptr), value :: handle, user
        integer(c_int) :: status
        type(worker_function), pointer :: f
        type(replica) :: self
        call c_f_pointer(user, f)
        self%handle = handle
        call f%function(self, f%user)
        status = self%status
    end function

    ! -- coordinators --

    ! Creates the coordinator of a strategy, and starts a thread for each worker.
    subroutine coordinator_create(self, s, status, options)
        class(coordinator), intent(inout) :: self
        type(strategy), intent(in) :: s
        integer, intent(out) :: status
        type(coordinator_options), intent(in), optional :: options
        type(coordinator_options) :: given
        if (c_associated(self%handle)) then
            status = failure('create: the coordinator exists: destroy it first')
            return
        end if
        if (present(options)) given = options
        if (given%queue_capacity < 0 .or. given%max_attempts < 0) then
            status = failure('create: queue_capacity or max_attempts is negative')
            return
        end if
        given%struct_size = c_sizeof(given)
        status = c_create(s%handle, given, self%handle)
        if (status >= 0) self%strategy = s%handle
    end subroutine

    ! Lets the workers of this host execute the functions that host 0 schedules, and returns when the
    ! coordinator of host 0 is destroyed. On all hosts but 0.
    subroutine serve(s, status, prepare)
        type(strategy), intent(in) :: s
        integer, intent(out) :: status
        type(serve_function), intent(inout), optional, target :: prepare
        type(serving), target :: what
        if (.not. present(prepare)) then
            status = c_serve(s%handle, c_null_funptr, c_null_ptr)
            return
        end if
        if (.not. associated(prepare%function)) then
            status = failure('serve: the serve_function has no function')
            return
        end if
        if (.not. associated(prepare%user)) prepare%user => nothing
        what%function => prepare
        what%strategy = s%handle
        status = c_serve(s%handle, c_funloc(on_serve), c_loc(what))
    end subroutine

    ! What C calls to prepare a host.
    function on_serve(handle, user) bind(c) result(status)
        type(c_ptr), value :: handle, user
        integer(c_int) :: status
        type(serving), pointer :: what
        type(coordinator) :: c
        call c_f_pointer(user, what)
        c%handle = handle
        c%strategy = what%strategy
        status = ditto_ok
        call what%function%function(c, what%function%user, status)
    end function

    ! Puts a function into the queue, with copies of its arguments. If the queue is full, it waits, or with
    ! `no_wait` schedules nothing and gives the status ditto_pending. Without `r`, results are discarded.
    subroutine coordinator_schedule(self, name, status, r, arguments, names, no_wait)
        class(coordinator), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(out) :: status
        type(remote), intent(inout), optional, target :: r
        type(tensor), intent(in), optional :: arguments(:)
        character(*), intent(in), optional :: names(:)
        logical, intent(in), optional :: no_wait
        character(:), allocatable :: list
        type(tensor) :: none(1)
        type(c_ptr) :: out
        integer(c_int) :: at_once
        status = check_schedule(self, r, arguments, names)
        if (status < 0) return
        out = c_null_ptr
        if (present(r)) out = c_loc(r%handle)
        at_once = 0
        if (present(no_wait)) at_once = merge(1_c_int, 0_c_int, no_wait)
        if (.not. present(arguments)) then
            status = c_schedule(self%handle, self%strategy, trim(name)//c_null_char, none, 0_c_size_t, &
                                c_null_char, at_once, out)
            return
        end if
        call join_names(names, list)
        status = c_schedule(self%handle, self%strategy, trim(name)//c_null_char, arguments, &
                            size(arguments, kind=c_size_t), list, at_once, out)
    end subroutine

    function check_schedule(self, r, arguments, names) result(status)
        class(coordinator), intent(in) :: self
        type(remote), intent(in), optional :: r
        type(tensor), intent(in), optional :: arguments(:)
        character(*), intent(in), optional :: names(:)
        integer(c_int) :: status
        integer :: n
        n = 0
        status = ditto_ok
        if (present(arguments)) n = size(arguments)
        if (present(r)) then
            if (c_associated(r%handle)) status = failure('schedule: the remote exists: destroy it first')
        end if
        if (present(names) .and. status == 0) then
            if (size(names) /= n) then
                status = failure('schedule: there are not as many names as arguments')
            else if (any(len_trim(names) == 0)) then
                status = failure('schedule: a name of an argument is empty')
            end if
        end if
        if (.not. c_associated(self%handle)) &
            status = failure('schedule: there is no coordinator: create it first')
        if (present(arguments) .and. status == 0) status = check_views('schedule', arguments)
    end function

    ! The names one behind the other, each with its zero.
    subroutine join_names(names, list)
        character(*), intent(in), optional :: names(:)
        character(:), allocatable, intent(out) :: list
        integer :: i
        list = ''
        if (present(names)) then
            do i = 1, size(names)
                list = list//trim(names(i))//c_null_char
            end do
        end if
        list = list//c_null_char
    end subroutine

    ! Waits until the queue is empty and no worker executes a function. Gives the error of the function that
    ! failed first, once.
    subroutine coordinator_join(self, status)
        class(coordinator), intent(in) :: self
        integer, intent(out) :: status
        status = c_join(self%handle)
    end subroutine

    ! `all_ended` is true if the queue is empty and no worker executes a function.
    subroutine coordinator_done(self, all_ended, status)
        class(coordinator), intent(in) :: self
        logical, intent(out) :: all_ended
        integer, intent(out) :: status
        integer(c_int) :: done
        done = 0
        status = c_done(self%handle, done)
        all_ended = done /= 0
    end subroutine

    function coordinator_num_workers(self) result(n)
        class(coordinator), intent(in) :: self
        integer :: n
        n = int(c_num_workers(self%handle))
    end function

    ! What a worker has done. Workers are counted from 0.
    subroutine coordinator_worker_info(self, worker, info, status)
        class(coordinator), intent(in) :: self
        integer, intent(in) :: worker
        type(worker_info), intent(out) :: info
        integer, intent(out) :: status
        info%struct_size = c_sizeof(info)
        status = c_worker_info(self%handle, int(worker, c_int32_t), info)
    end subroutine

    ! Cancels the functions in the queue, waits for those that have begun, and ends the workers. After
    ! ditto_err_poisoned the coordinator is destroyed, too.
    subroutine coordinator_destroy(self, status)
        class(coordinator), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status < 0 .and. status /= ditto_err_poisoned) return
        self%handle = c_null_ptr
        self%strategy = c_null_ptr
    end subroutine

    ! -- results --

    ! Waits until the function has ended, and keeps copies of its results in the object. They can be read
    ! until the object or the strategy is destroyed. The status is that of the function. Later calls do not
    ! wait, and give the same one.
    subroutine remote_fetch(self, status)
        class(remote), intent(inout) :: self
        integer, intent(out) :: status
        if (.not. self%is_fetched) then
            self%status = c_fetch(self%handle, self%results)
            self%is_fetched = self%status >= 0
        end if
        status = self%status
    end subroutine

    ! Copies a result to an array of the same type and number of elements, after a fetch. It is the one with
    ! this number, counted from 1, or with this name, or the only one. If a worker has several replicas, each
    ! of them gives results, and `replica_id` says whose is meant.
    subroutine remote_result(self, x, status, number, name, replica_id)
        class(remote), intent(inout) :: self
        type(*), dimension(..) :: x
        integer, intent(out) :: status
        integer, intent(in), optional :: number, replica_id
        character(*), intent(in), optional :: name
        integer(c_int) :: found
        call self%fetch(status)
        if (status < 0) return
        if (present(name)) then
            found = c_result(self%results, number_for_c(number), trim(name)//c_null_char, &
                             replica_for_c(replica_id), x)
        else
            found = c_result(self%results, number_for_c(number), c_null_char, replica_for_c(replica_id), x)
        end if
        if (found < 0) status = found
    end subroutine

    ! A view of a result, after a fetch. It is valid as long as the results.
    subroutine remote_result_view(self, view, status, number, name, replica_id)
        class(remote), intent(inout) :: self
        type(tensor), intent(out) :: view
        integer, intent(out) :: status
        integer, intent(in), optional :: number, replica_id
        character(*), intent(in), optional :: name
        integer(c_int) :: found
        call self%fetch(status)
        if (status < 0) return
        if (present(name)) then
            found = c_result_view(self%results, number_for_c(number), trim(name)//c_null_char, &
                                  replica_for_c(replica_id), view)
        else
            found = c_result_view(self%results, number_for_c(number), c_null_char, &
                                  replica_for_c(replica_id), view)
        end if
        if (found < 0) status = found
    end subroutine

    ! C gets -1 if there is no replica, and -2 for one that is refused.
    pure function replica_for_c(replica_id) result(id)
        integer, intent(in), optional :: replica_id
        integer(c_int) :: id
        id = -1
        if (.not. present(replica_id)) return
        id = int(replica_id, c_int)
        if (replica_id < 0) id = -2
    end function

    ! `complete` is true if fetch would not wait.
    subroutine remote_test(self, complete, status)
        class(remote), intent(in) :: self
        logical, intent(out) :: complete
        integer, intent(out) :: status
        integer(c_int) :: done
        done = 0
        status = c_test(self%handle, done)
        complete = done /= 0
    end subroutine

    ! Cancels the function. The status is ditto_err_busy if it has begun or ended.
    subroutine remote_cancel(self, status)
        class(remote), intent(in) :: self
        integer, intent(out) :: status
        status = c_cancel(self%handle)
    end subroutine

    ! The function is executed nevertheless.
    subroutine remote_destroy(self, status)
        class(remote), intent(inout) :: self
        integer, intent(out) :: status
        status = c_value_destroy(self%results)
        self%results = c_null_ptr
        if (status >= 0) status = c_remote_destroy(self%handle)
        if (status < 0) return
        self%handle = c_null_ptr
        self%is_fetched = .false.
    end subroutine

    ! -- what belongs to a worker --

    ! Makes a value for each worker: a copy of the first array for worker 0, of the second one for worker 1,
    ! and so on. It lies on the worker's NUMA node, and keeps what functions write to it.
    subroutine per_worker_create_values(self, c, initial, status)
        class(per_worker), intent(inout) :: self
        type(coordinator), intent(in) :: c
        type(tensor), intent(in) :: initial(:)
        integer, intent(out) :: status
        type(tensor), allocatable, target :: copies(:)
        character(100) :: text
        if (size(initial) /= c%num_workers()) then
            write (text, '(i0, a, i0, a)') size(initial), ' arrays for ', c%num_workers(), ' workers'
            status = failure('create_values: '//text)
            return
        end if
        status = check_views('create_values', initial)
        if (status < 0) return
        copies = initial
        status = c_create_values(c%handle, c_funloc(on_value), c_loc(copies), self%handle)
    end subroutine

    ! What C calls for the value of a worker.
    function on_value(worker, num_workers, user, view) bind(c) result(status)
        integer(c_int32_t), value :: worker, num_workers
        type(c_ptr), value :: user
        type(tensor), intent(inout) :: view
        integer(c_int) :: status
        type(tensor), pointer :: initial(:)
        call c_f_pointer(user, initial, [num_workers])
        view = initial(worker + 1)
        status = ditto_ok
    end function

    ! Makes an iterator for each worker, over a dataset that the function makes for it. Each worker makes its
    ! own before it begins the next function.
    subroutine per_worker_create_iterators(self, c, function, status, options)
        class(per_worker), intent(inout) :: self
        type(coordinator), intent(in) :: c
        type(dataset_function), intent(inout), target :: function
        integer, intent(out) :: status
        type(input_options), intent(in), optional :: options
        type(input_options) :: given
        if (.not. associated(function%function)) then
            status = failure('create_iterators: the dataset_function has no function')
            return
        end if
        if (.not. associated(function%user)) function%user => nothing
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        if (given%global_batch < 0 .or. given%pass < 0 .or. given%max_bytes < 0) then
            status = failure('create_iterators: global_batch, pass or max_bytes is negative')
            return
        end if
        status = c_create_iterators(c%handle, c_funloc(on_dataset), c_loc(function), given, self%handle)
    end subroutine

    ! What C calls for the dataset of a worker. C ignores the dataset after an error.
    function on_dataset(context, user, out) bind(c) result(status)
        type(input_context), intent(in) :: context
        type(c_ptr), value :: user
        type(c_ptr), intent(inout) :: out
        integer(c_int) :: status
        type(dataset_function), pointer :: f
        type(dataset) :: rows
        integer :: ignored
        call c_f_pointer(user, f)
        status = ditto_ok
        call f%function(context, rows, f%user, status)
        if (status == ditto_ok) then
            out = rows%handle
        else if (c_associated(rows%handle)) then
            call rows%destroy(ignored)
        end if
    end function

    ! A view of the worker's own value, which may be written. In a function of a worker.
    subroutine per_worker_value(self, of, view, status)
        class(per_worker), intent(in) :: self
        class(replica), intent(inout) :: of
        type(tensor), intent(out) :: view
        integer, intent(out), optional :: status
        integer(c_int) :: found
        found = of%status
        if (found == 0) found = c_value(of%handle, self%handle, view)
        call of%keep(found, status)
    end subroutine

    ! The worker's own iterator, for next. It belongs to the coordinator, so it must not be destroyed. In a
    ! function of a worker.
    subroutine per_worker_iterator(self, of, steps, status)
        class(per_worker), intent(in) :: self
        class(replica), intent(inout) :: of
        type(iterator), intent(inout) :: steps
        integer, intent(out), optional :: status
        integer(c_int) :: found
        found = of%status
        if (found == 0) found = c_iterator(of%handle, self%handle, steps%handle)
        call of%keep(found, status)
    end subroutine
end module
