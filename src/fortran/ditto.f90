! src/fortran/ditto.f90 - ditto in Fortran 2018.
!
! The module ditto has the objects of ditto as types with procedures: a strategy, the replica that a procedure
! of a run gets, variables of the library, and operations that were started. Datasets are in the module
! ditto_input, optimizers in ditto_optimizers, checkpoints in ditto_checkpoints, and several hosts in
! ditto_mpi. What each procedure means, which errors it has, and what it costs, is said in the C header of the
! same name (include/ditto/collective.h and the others).
!
! Arrays may have any rank and any kind that ditto knows: real and complex of 4 and 8 bytes a number, integer
! of 1, 2, 4 and 8 bytes, logical(c_bool). No array is copied on the way. One whose elements do not lie
! together, as a(k, :), is an error.
!
! Errors never end the program. Procedures of a strategy and of a variable give a status. Those of a replica
! give one too, if it is asked for; in any case the replica keeps the first error, does nothing in later
! calls, and the run ends with that error on all replicas. A status below 0 is an error; error_message() is
! its text.
!
! Compile programs so that the local arrays of procedures belong to a thread: gfortran needs -frecursive.

! What the modules share. Programs do not use it.
module ditto_internal
    use, intrinsic :: iso_c_binding
    implicit none

    ! Texts as C has them: what `pointers` point to ends with a zero.
    type :: text_copy
        character(:), allocatable :: text
    end type
    type :: text_list
        type(text_copy), allocatable :: copies(:)
        type(c_ptr), allocatable :: pointers(:)
    end type

    interface
        function c_fail(self, code, text) bind(c, name='ditto_f_fail') result(status)
            import
            type(c_ptr), value :: self
            integer(c_int32_t), value :: code
            character(kind=c_char), intent(in) :: text(*)
            integer(c_int) :: status
        end function
        function c_strlen(text) bind(c, name='strlen') result(n)
            import
            type(c_ptr), value :: text
            integer(c_size_t) :: n
        end function
    end interface

contains

    ! Says whether a replica has had no error, so that it may call C. Otherwise the status is its first error.
    function ready(first_error, status) result(is)
        integer(c_int), intent(in) :: first_error
        integer, intent(out), optional :: status
        logical :: is
        is = first_error == 0
        if (present(status)) status = first_error
    end function

    ! A copy of a text of C.
    function from_c(text) result(copy)
        type(c_ptr), intent(in) :: text
        character(:), allocatable :: copy
        character(kind=c_char), pointer :: characters(:)
        call c_f_pointer(text, characters, [c_strlen(text)])
        allocate (character(size(characters)) :: copy)
        copy = transfer(characters, copy)
    end function

    ! Copies texts to a list that C can read.
    subroutine list_texts(texts, list)
        character(*), intent(in) :: texts(:)
        type(text_list), intent(out), target :: list
        integer :: i
        allocate (list%copies(size(texts)), list%pointers(size(texts)))
        do i = 1, size(texts)
            list%copies(i)%text = trim(texts(i))//c_null_char
            list%pointers(i) = c_loc(list%copies(i)%text)
        end do
    end subroutine

    ! Sets the message of an error that a procedure of the program returns with its status:
    !     status = failure('no such row')
    function failure(message) result(status)
        character(*), intent(in) :: message
        integer(c_int) :: status
        status = c_fail(c_null_ptr, 0_c_int32_t, trim(message)//c_null_char)
    end function

    ! Whether a procedure of a module must refuse its arguments. If so, `status` is an error with the message.
    function refused(condition, message, status) result(is)
        logical, intent(in) :: condition
        character(*), intent(in) :: message
        integer, intent(out) :: status
        logical :: is
        is = condition
        status = 0
        if (is) status = failure(message)
    end function

    ! Whether an object exists, so that it must not be created. `what` is the procedure and the object.
    function exists(handle, what, status) result(is)
        type(c_ptr), intent(in) :: handle
        character(*), intent(in) :: what
        integer, intent(out) :: status
        logical :: is
        is = refused(c_associated(handle), what//' exists: destroy it first', status)
    end function
end module

module ditto
    use, intrinsic :: iso_c_binding
    use ditto_internal
    implicit none
    private

    public :: strategy, strategy_options, replica, variable, pending, exchange_part, user_procedure
    public :: grouping, replica_group
    public :: tensor, tensor_of, check_views, elements_of, extents, elements_procedure, through_procedure
    public :: from_c
    public :: error_message, failure, library_version, c_sizes

    ! -- constants of the C headers, compared by tests/fortran/check_constants.py --

    integer(c_int), parameter, public :: ditto_ok = 0, ditto_end_of_input = 1, ditto_pending = 2, &
                                         ditto_err_invalid = -1, ditto_err_range = -2, &
                                         ditto_err_shape = -3, ditto_err_context = -4, &
                                         ditto_err_diverged = -5, ditto_err_peer_stopped = -6, &
                                         ditto_err_timed_out = -7, ditto_err_poisoned = -8, &
                                         ditto_err_busy = -9, ditto_err_closed = -10, &
                                         ditto_err_forked = -11, ditto_err_unsupported = -12, &
                                         ditto_err_not_found = -13, ditto_err_io = -14, &
                                         ditto_err_corrupt = -15, ditto_err_no_memory = -16, &
                                         ditto_err_system = -17, ditto_err_user = -18, &
                                         ditto_err_lost = -19, ditto_err_cancelled = -20
    integer(c_int), parameter, public :: ditto_sum = 1, ditto_mean = 2, ditto_min = 3, ditto_max = 4, &
                                         ditto_prod = 5, ditto_and = 6, ditto_or = 7, ditto_xor = 8
    integer(c_int), parameter, public :: ditto_f16 = 1, ditto_bf16 = 2, ditto_f32 = 3, ditto_f64 = 4, &
                                         ditto_c64 = 5, ditto_c128 = 6, ditto_i8 = 7, ditto_i16 = 8, &
                                         ditto_i32 = 9, ditto_i64 = 10, ditto_u8 = 11, ditto_u16 = 12, &
                                         ditto_u32 = 13, ditto_u64 = 14, ditto_bool = 15
    integer(c_int), parameter, public :: ditto_synchronization_default = 0, ditto_on_write = 1, &
                                         ditto_on_read = 2
    integer(c_int), parameter, public :: ditto_aggregate_default = 0, ditto_aggregate_none = 64, &
                                         ditto_aggregate_sum = 65, ditto_aggregate_mean = 66, &
                                         ditto_aggregate_only_first_replica = 67
    integer(c_int), parameter, public :: ditto_scatter_add = 1, ditto_scatter_sub = 2, &
                                         ditto_scatter_mul = 3, ditto_scatter_div = 4, &
                                         ditto_scatter_min = 5, ditto_scatter_max = 6, &
                                         ditto_scatter_update = 7
    integer(c_int), parameter, public :: ditto_mirrored = 1, ditto_central_storage = 2, &
                                         ditto_one_device = 3, ditto_default_strategy = 4, &
                                         ditto_parameter_server = 5

    ! For components of strategy_options, and the switches for cluster_options too.
    integer(c_int), parameter, public :: ditto_span_default = 0, ditto_span_pu = 1, ditto_span_core = 2, &
                                         ditto_span_llc = 3, ditto_span_numa_node = 4, &
                                         ditto_span_package = 5, ditto_span_machine = 6
    integer(c_int), parameter, public :: ditto_caller_default = 0, ditto_caller_is_replica_0 = 1, &
                                         ditto_caller_waits = 2
    integer(c_int), parameter, public :: ditto_pin_default = 0, ditto_pin_pu = 1, ditto_pin_none = 2
    integer(c_int), parameter, public :: ditto_switch_default = 0, ditto_switch_on = 1, ditto_switch_off = 2
    integer(c_int), parameter, public :: ditto_memory_default = 0, ditto_memory_preferred = 1, &
                                         ditto_memory_strict = 2
    integer(c_int), parameter, public :: ditto_implementation_default = 0, ditto_implementation_flat = 1, &
                                         ditto_implementation_hierarchical = 2
    integer(c_int), parameter, public :: ditto_kernels_default = 0, ditto_kernels_portable = 1, &
                                         ditto_kernels_avx2 = 2, ditto_kernels_avx512 = 3
    integer(c_int), parameter, public :: ditto_floating_default = 0, ditto_floating_standard = 1, &
                                         ditto_floating_caller = 2
    integer(c_int), parameter, public :: ditto_wait_default = 0, ditto_wait_active = 1, ditto_wait_passive = 2
    integer(c_int32_t), parameter, public :: ditto_forever = -1 ! for timeout_ms

    ! -- types --
    !
    ! All procedures are non_overridable, so calls of them are direct. Calls through a table of procedures
    ! would reach another procedure if a program were compiled with the module file of another build.

    ! The options of a strategy, as ditto_strategy_options has them. The components have their defaults.
    type, bind(c) :: strategy_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: num_replicas = 0
        integer(c_int) :: span = 0
        type(c_ptr) :: placement_options = c_null_ptr
        type(c_ptr) :: placement = c_null_ptr
        integer(c_int) :: caller = 0
        integer(c_int) :: pin = 0
        integer(c_int) :: helpers = 0
        integer(c_size_t) :: stack_bytes = 0
        type(c_funptr) :: thread_start = c_null_funptr
        type(c_funptr) :: thread_stop = c_null_funptr
        type(c_ptr) :: thread_user = c_null_ptr
        integer(c_int) :: memory = 0
        integer(c_int32_t) :: parameter_node = 0
        integer(c_int) :: has_parameter_node = 0
        integer(c_int32_t) :: timeout_ms = 0
        integer(c_int32_t) :: run_timeout_ms = 0
        integer(c_int32_t) :: spin_us = 0
        integer(c_int) :: has_spin_us = 0
        integer(c_int) :: implementation = 0
        integer(c_size_t) :: bytes_per_pack = 0
        integer(c_int) :: kernels = 0
        type(c_ptr) :: tuning = c_null_ptr
        integer(c_int) :: floating = 0
        integer(c_int) :: wait = 0
        integer(c_int32_t) :: order_blocks = 0
        integer(c_int) :: part = 0
        type(c_ptr) :: cluster = c_null_ptr
        integer(c_int) :: run_agreement = 0
        integer(c_int32_t) :: replicas_per_worker = 0
        type(c_ptr) :: parameter_nodes = c_null_ptr
        integer(c_int32_t) :: num_parameter_nodes = 0
        integer(c_int32_t) :: fastest_kinds = 0
        integer(c_int32_t) :: pus_per_replica = 0
    end type

    ! A part of an exchange, as ditto_exchange_part. Made by replica%part.
    type, bind(c) :: exchange_part
        integer(c_int32_t) :: replica = 0
        integer(c_int32_t) :: tag = 0
        type(c_ptr) :: src = c_null_ptr
        type(c_ptr) :: dst = c_null_ptr
        integer(c_size_t) :: src_count = 0
        integer(c_size_t) :: dst_count = 0
        integer(c_int) :: dtype = 0
    end type

    ! An operation that was started. Its arrays must stay where they are until it has been waited for.
    type, bind(c) :: pending
        integer(c_int64_t) :: number = 0
        type(c_ptr) :: replica = c_null_ptr
        integer(c_int32_t) :: run = 0
    end type

    ! A view of an array, as ditto_tensor. It owns no memory. tensor_of makes one. The order of dimensions is
    ! that of C, in which the last one is that whose elements lie together. `extents` gives them in the order
    ! of Fortran, for c_f_pointer:
    !     call c_f_pointer(view%data, x, extents(view))
    type, bind(c) :: tensor
        type(c_ptr) :: data = c_null_ptr
        integer(c_int) :: dtype = 0
        integer(c_int32_t) :: rank = 0
        integer(c_size_t) :: shape(8) = 0
        integer(c_int32_t) :: device = 0
    end type

    ! A variable of the library: mirrored, sync-on-read, or a parameter of workers. Its rows are its last
    ! dimension in Fortran, and are counted from 1.
    type :: variable
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: read => variable_read
        procedure, non_overridable :: assign => variable_assign
        procedure, non_overridable :: lookup => variable_lookup
        procedure, non_overridable :: scatter => variable_scatter
        procedure, non_overridable :: destroy => variable_destroy
    end type

    ! A division of the replicas into groups: one axis of a mesh, or a split.
    type :: grouping
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: destroy => grouping_destroy
    end type

    ! The group of a replica, as ditto_group. replica%group_of makes one for each run. Ranks are counted from
    ! 0. Where the replica is in no group, its size is 0.
    type, bind(c) :: replica_group
        integer(c_int32_t) :: index = 0
        integer(c_int32_t) :: rank = 0
        integer(c_int32_t) :: size = 0
        type(c_ptr) :: replicas = c_null_ptr
        integer(c_int64_t) :: grouping = 0
        integer(c_int32_t) :: slot = 0
        integer(c_int32_t) :: run = 0
    end type

    ! A replica, in a procedure of a run. Replicas have the numbers 0 to num_replicas() - 1.
    type :: replica
        type(c_ptr) :: handle = c_null_ptr
        ! The first error, or 0.
        integer(c_int) :: status = 0
    contains
        procedure, non_overridable :: id => replica_id
        procedure, non_overridable :: num_replicas => replica_num_replicas
        procedure, non_overridable :: is_first_of_host => replica_is_first_of_host
        procedure, non_overridable :: group_of => replica_group_of
        procedure, non_overridable :: fail => replica_fail
        procedure, non_overridable :: barrier => replica_barrier
        procedure, non_overridable :: all_reduce => replica_all_reduce
        procedure, non_overridable :: all_reduce_to => replica_all_reduce_to
        procedure, non_overridable :: reduce => replica_reduce
        procedure, non_overridable :: broadcast => replica_broadcast
        procedure, non_overridable :: broadcast_text => replica_broadcast_text
        procedure, non_overridable :: reduce_scatter => replica_reduce_scatter
        procedure, non_overridable :: all_gather => replica_all_gather
        procedure, non_overridable :: all_to_all => replica_all_to_all
        procedure, non_overridable :: gather_to_root => replica_gather_to_root
        procedure, non_overridable :: scatter_from_root => replica_scatter_from_root
        procedure, non_overridable :: scan => replica_scan
        procedure, non_overridable :: scan_exclusive => replica_scan_exclusive
        procedure, non_overridable :: all_reduce_through => replica_all_reduce_through
        procedure, non_overridable :: block_sum => replica_block_sum
        procedure, non_overridable :: block_sum_with => replica_block_sum_with
        procedure, non_overridable :: block_dot => replica_block_dot
        procedure, non_overridable :: start_all_reduce => replica_start_all_reduce
        procedure, non_overridable :: start_reduce_scatter => replica_start_reduce_scatter
        procedure, non_overridable :: start_all_gather => replica_start_all_gather
        procedure, non_overridable :: start_all_to_all => replica_start_all_to_all
        procedure, non_overridable :: wait => replica_wait
        procedure, non_overridable :: test => replica_test
        procedure, non_overridable :: part => replica_part
        procedure, non_overridable :: exchange => replica_exchange
        procedure, non_overridable :: read => replica_read
        procedure, non_overridable :: assign => replica_assign
        procedure, non_overridable :: assign_add => replica_assign_add
        procedure, non_overridable :: assign_sub => replica_assign_sub
        procedure, non_overridable :: lookup => replica_lookup
        procedure, non_overridable :: scatter => replica_scatter
        procedure, non_overridable :: alloc => replica_alloc
        procedure, non_overridable :: free => replica_free
        procedure, non_overridable :: keep => replica_keep
    end type

    ! A strategy. It is destroyed by destroy, and not when the object goes out of scope.
    type :: strategy
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: create => strategy_create
        procedure, non_overridable :: destroy => strategy_destroy
        procedure, non_overridable :: run => strategy_run
        procedure, non_overridable :: num_replicas => strategy_num_replicas
        procedure, non_overridable :: create_variable => strategy_create_variable
        procedure, non_overridable :: split => strategy_split
        procedure, non_overridable :: mesh => strategy_mesh
    end type

    abstract interface
        ! A procedure that a run calls on each replica. `user` is what the program gave to run.
        subroutine user_procedure(self, user)
            import :: replica
            class(replica), intent(inout) :: self
            class(*), intent(inout) :: user
        end subroutine

        ! A procedure that computes elements of its replica, for block_sum_with. `elements` is memory for some
        ! of them, of which the first one has the number `first`, counted from 1. The same elements may be
        ! asked for twice. `status` is 0, or the result of `failure`.
        subroutine elements_procedure(elements, first, user, status)
            import :: tensor, c_size_t, c_int
            type(tensor), intent(in) :: elements
            integer(c_size_t), intent(in) :: first
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine

        ! A procedure that changes the combined array of an all_reduce_through, on replica 0.
        subroutine through_procedure(combined, user, status)
            import :: tensor, c_int
            type(tensor), intent(in) :: combined
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine
    end interface

    ! What block_sum_with and all_reduce_through give to C.
    type :: elements_call
        procedure(elements_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
        integer(c_int) :: dtype = 0
    end type
    type :: through_call
        procedure(through_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
    end type

    ! What run gives to C.
    type :: run_call
        procedure(user_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
    end type

    ! -- C --
    !
    ! Each function has an interface of its own, also where only names differ. If functions are declared by
    ! procedure(...), bind(c), gfortran 12 passes wrong arguments in all calls of a function but one.

    interface
        function c_create(options, kind, out) bind(c, name='ditto_f_create') result(status)
            import
            type(strategy_options), intent(in) :: options
            integer(c_int), value :: kind
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_destroy(handle) bind(c, name='ditto_strategy_destroy') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        function c_run(handle, function, user) bind(c, name='ditto_strategy_run') result(status)
            import
            type(c_ptr), value :: handle, user
            type(c_funptr), value :: function
            integer(c_int) :: status
        end function
        function c_strategy_size(handle) bind(c, name='ditto_strategy_num_replicas') result(n)
            import
            type(c_ptr), value :: handle
            integer(c_int32_t) :: n
        end function
        function c_id(self) bind(c, name='ditto_replica_id') result(id)
            import
            type(c_ptr), value :: self
            integer(c_int32_t) :: id
        end function
        function c_size(self) bind(c, name='ditto_num_replicas') result(n)
            import
            type(c_ptr), value :: self
            integer(c_int32_t) :: n
        end function
        function c_first_of_host(self) bind(c, name='ditto_replica_is_first_of_host') result(is)
            import
            type(c_ptr), value :: self
            integer(c_int) :: is
        end function
        function c_abandon(self, status) bind(c, name='ditto_abandon') result(same)
            import
            type(c_ptr), value :: self
            integer(c_int), value :: status
            integer(c_int) :: same
        end function
        function c_split(handle, colors, keys, n, out) bind(c, name='ditto_strategy_split') result(status)
            import
            type(c_ptr), value :: handle, keys
            integer(c_int32_t), intent(in) :: colors(*)
            integer(c_int32_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_mesh(handle, names, extents, n, out) bind(c, name='ditto_f_mesh') result(status)
            import
            type(c_ptr), value :: handle
            type(c_ptr), intent(in) :: names(*)
            integer(c_int32_t), intent(in) :: extents(*)
            integer(c_int32_t), value :: n
            type(c_ptr), intent(inout) :: out(*)
            integer(c_int) :: status
        end function
        function c_destroy_grouping(handle) bind(c, name='ditto_grouping_destroy') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        function c_group_of(self, handle, group) bind(c, name='ditto_group_of') result(status)
            import
            type(c_ptr), value :: self, handle
            type(replica_group), intent(inout) :: group
            integer(c_int) :: status
        end function
        ! A label is a character variable of any length.
        function c_barrier(self, label, group) bind(c, name='ditto_f_barrier') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        ! With `out`, the three that follow start an operation.
        function c_all_reduce(self, src, dst, op, label, group, out) bind(c, name='ditto_f_all_reduce') &
            result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), asynchronous :: src, dst
            integer(c_int), value :: op
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            type(pending), intent(inout), optional :: out
            integer(c_int) :: status
        end function
        function c_reduce_scatter(self, src, dst, op, label, group, out) &
            bind(c, name='ditto_f_reduce_scatter') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in), asynchronous :: src
            type(*), dimension(..), asynchronous :: dst
            integer(c_int), value :: op
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            type(pending), intent(inout), optional :: out
            integer(c_int) :: status
        end function
        function c_all_gather(self, src, dst, label, group, out) &
            bind(c, name='ditto_f_all_gather') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in), asynchronous :: src
            type(*), dimension(..), asynchronous :: dst
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            type(pending), intent(inout), optional :: out
            integer(c_int) :: status
        end function
        function c_scan(self, src, dst, op, label, group, exclusive) &
            bind(c, name='ditto_f_scan') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in) :: src
            type(*), dimension(..) :: dst
            integer(c_int), value :: op
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int), value :: exclusive
            integer(c_int) :: status
        end function
        ! The sizes of parts are contiguous arrays.
        function c_all_to_all(self, src, dst, src_counts, dst_counts, label, group, out) &
            bind(c, name='ditto_f_all_to_all') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), asynchronous :: src, dst
            integer(c_size_t), dimension(:), intent(in), optional :: src_counts, dst_counts
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            type(pending), intent(inout), optional :: out
            integer(c_int) :: status
        end function
        function c_gather_to_root(self, src, dst, counts, root, label, group) &
            bind(c, name='ditto_f_gather_to_root') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in) :: src
            type(*), dimension(..) :: dst
            integer(c_size_t), dimension(:), intent(in), optional :: counts
            integer(c_int), value :: root
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_scatter_from_root(self, src, dst, counts, root, label, group) &
            bind(c, name='ditto_f_scatter_from_root') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in) :: src
            type(*), dimension(..) :: dst
            integer(c_size_t), dimension(:), intent(in), optional :: counts
            integer(c_int), value :: root
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_reduce(self, x, root, op, label, group) bind(c, name='ditto_f_reduce') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..) :: x
            integer(c_int), value :: root, op
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_broadcast(self, x, root, label, group) bind(c, name='ditto_f_broadcast') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..) :: x
            integer(c_int), value :: root
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_all_reduce_through(self, x, op, function, user, label, group) &
            bind(c, name='ditto_f_all_reduce_through') result(status)
            import
            type(c_ptr), value :: self, user
            type(*), dimension(..) :: x
            integer(c_int), value :: op
            type(c_funptr), value :: function
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_block_sum(self, x, total, label, group) bind(c, name='ditto_f_block_sum') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in) :: x
            type(*), dimension(..) :: total
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_block_sum_with(self, function, user, dtype, count, total, label, group) &
            bind(c, name='ditto_f_block_sum_with') result(status)
            import
            type(c_ptr), value :: self, user
            type(c_funptr), value :: function
            integer(c_int), intent(out) :: dtype
            integer(c_size_t), value :: count
            type(*), dimension(..) :: total
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        subroutine c_tensor(x, view) bind(c, name='ditto_f_tensor')
            import
            type(*), dimension(..), intent(in) :: x
            type(tensor), intent(out) :: view
        end subroutine
        function c_check_views(procedure, views, n) bind(c, name='ditto_f_check_views') result(status)
            import
            character(kind=c_char), intent(in) :: procedure(*)
            type(tensor), intent(in) :: views(*)
            integer(c_size_t), value :: n
            integer(c_int) :: status
        end function
        function c_elements(view, x) bind(c, name='ditto_f_elements') result(status)
            import
            type(tensor), intent(in) :: view
            type(*), dimension(..) :: x
            integer(c_int) :: status
        end function
        function c_block_dot(self, x, y, total, label, group) bind(c, name='ditto_f_block_dot') result(status)
            import
            type(c_ptr), value :: self
            type(*), dimension(..), intent(in) :: x, y
            type(*), dimension(..) :: total
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_wait(self, operation, options) bind(c, name='ditto_wait') result(status)
            import
            type(c_ptr), value :: self, options
            type(pending), intent(inout) :: operation
            integer(c_int) :: status
        end function
        function c_test(self, operation) bind(c, name='ditto_test') result(status)
            import
            type(c_ptr), value :: self
            type(pending), intent(inout) :: operation
            integer(c_int) :: status
        end function
        function c_part(src, dst, part) bind(c, name='ditto_f_part') result(status)
            import
            type(*), dimension(..), intent(in) :: src
            type(*), dimension(..) :: dst
            type(exchange_part), intent(inout) :: part
            integer(c_int) :: status
        end function
        function c_exchange(self, parts, n, label, group) bind(c, name='ditto_f_exchange') result(status)
            import
            type(c_ptr), value :: self
            type(exchange_part), intent(in) :: parts(*)
            integer(c_size_t), value :: n
            type(*), dimension(..), intent(in), optional :: label
            type(replica_group), intent(in), optional :: group
            integer(c_int) :: status
        end function
        function c_alloc(self, bytes, alignment, out) bind(c, name='ditto_alloc') result(status)
            import
            type(c_ptr), value :: self
            integer(c_size_t), value :: bytes, alignment
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_free(self, memory) bind(c, name='ditto_free') result(status)
            import
            type(c_ptr), value :: self, memory
            integer(c_int) :: status
        end function
        function c_variable_create(handle, initial, name, synchronization, aggregation, shards, out) &
            bind(c, name='ditto_f_variable_create') result(status)
            import
            type(c_ptr), value :: handle
            type(*), dimension(..), intent(in) :: initial
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int), intent(in), optional :: synchronization, aggregation, shards
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_variable_destroy(handle) bind(c, name='ditto_variable_destroy') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        ! `self` is the calling replica, here and in the next two functions. It is absent outside of runs.
        function c_write(v, x, rule, self) bind(c, name='ditto_f_write') result(status)
            import
            type(c_ptr), value :: v
            type(*), dimension(..) :: x
            integer(c_int), value :: rule
            type(c_ptr), intent(in), optional :: self
            integer(c_int) :: status
        end function
        function c_lookup(v, rows, x, self) bind(c, name='ditto_f_lookup') result(status)
            import
            type(c_ptr), value :: v
            type(*), dimension(..), intent(in) :: rows
            type(*), dimension(..) :: x
            type(c_ptr), intent(in), optional :: self
            integer(c_int) :: status
        end function
        function c_scatter(v, op, rows, x, self) bind(c, name='ditto_f_scatter') result(status)
            import
            type(c_ptr), value :: v
            integer(c_int), value :: op
            type(*), dimension(..), intent(in) :: rows
            type(*), dimension(..), intent(in) :: x
            type(c_ptr), intent(in), optional :: self
            integer(c_int) :: status
        end function
        function c_message() bind(c, name='ditto_f_message') result(text)
            import
            type(c_ptr) :: text
        end function
        function c_version() bind(c, name='ditto_version') result(text)
            import
            type(c_ptr) :: text
        end function
    end interface

contains

    ! -- text --

    ! The text of the last error of the calling thread. gfortran keeps the result of such a function in memory
    ! that all threads share, also with -frecursive. So call it outside of runs, where the error of a run is
    ! found, too.
    function error_message() result(text)
        character(:), allocatable :: text
        text = from_c(c_message())
    end function

    function library_version() result(text)
        character(:), allocatable :: text
        text = from_c(c_version())
    end function

    ! The bytes of the types that C has too, for a test.
    function c_sizes() result(bytes)
        integer(c_size_t) :: bytes(5)
        bytes = [storage_size(strategy_options()), storage_size(exchange_part()), storage_size(pending()), &
                 storage_size(tensor()), storage_size(replica_group())]/8
    end function

    ! -- views of arrays --

    ! A view of an array, which must be contiguous, and must stay where it is as long as the view is used. An
    ! array that is refused gives a view whose dtype is 0. The procedure that gets it fails, with the reason.
    function tensor_of(x) result(view)
        type(*), dimension(..), intent(in), target :: x
        type(tensor) :: view
        call c_tensor(x, view)
    end function

    ! Fails if tensor_of has refused an array. For procedures that get views; `procedure` is the name of one.
    function check_views(procedure, views) result(status)
        character(*), intent(in) :: procedure
        type(tensor), intent(in) :: views(:)
        integer(c_int) :: status
        status = c_check_views(procedure//c_null_char, views, size(views, kind=c_size_t))
    end function

    ! Copies the elements of a view to an array of the same type and number of elements.
    subroutine elements_of(view, x, status)
        type(tensor), intent(in) :: view
        type(*), dimension(..) :: x
        integer, intent(out) :: status
        status = c_elements(view, x)
    end subroutine

    ! The dimensions of a view in the order of Fortran.
    pure function extents(view) result(n)
        type(tensor), intent(in) :: view
        integer(c_size_t) :: n(view%rank)
        n = view%shape(view%rank:1:-1)
    end function

    ! -- strategies --

    ! Creates a strategy, which is mirrored unless `kind` says otherwise. Without options, `num_replicas`
    ! replicas with the defaults.
    subroutine strategy_create(self, num_replicas, status, options, kind)
        class(strategy), intent(inout) :: self
        integer, intent(in) :: num_replicas
        integer, intent(out) :: status
        type(strategy_options), intent(in), optional :: options
        integer(c_int), intent(in), optional :: kind
        type(strategy_options) :: given
        integer(c_int) :: of_kind
        if (exists(self%handle, 'create: the strategy', status)) return
        if (refused(num_replicas < 0, 'create: the number of replicas is negative', status)) return
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        given%num_replicas = int(num_replicas, c_int32_t)
        of_kind = ditto_mirrored
        if (present(kind)) of_kind = kind
        status = c_create(given, of_kind, self%handle)
        if (status < 0) self%handle = c_null_ptr
    end subroutine

    subroutine strategy_destroy(self, status)
        class(strategy), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine

    function strategy_num_replicas(self) result(n)
        class(strategy), intent(in) :: self
        integer :: n
        n = int(c_strategy_size(self%handle))
    end function

    ! Calls the procedure on each replica, and waits until all have returned.
    subroutine strategy_run(self, function, user, status)
        class(strategy), intent(in) :: self
        procedure(user_procedure) :: function
        class(*), intent(inout), target :: user
        integer, intent(out) :: status
        type(run_call), target :: call
        call%function => function
        call%user => user
        status = c_run(self%handle, c_funloc(on_replica), c_loc(call))
    end subroutine

    ! What C calls on each replica.
    function on_replica(handle, user) bind(c) result(status)
        type(c_ptr), value :: handle, user
        integer(c_int) :: status
        type(run_call), pointer :: call
        type(replica) :: self
        call c_f_pointer(user, call)
        self%handle = handle
        call call%function(self, call%user)
        status = self%status
    end function

    ! Creates a variable, which is cut into `shards` pieces of whole rows if that is given. Each shard of a
    ! parameter has its own lock and version.
    subroutine strategy_create_variable(self, initial, v, status, name, synchronization, aggregation, shards)
        class(strategy), intent(in) :: self
        type(*), dimension(..), intent(in) :: initial
        type(variable), intent(inout) :: v
        integer, intent(out) :: status
        character(*), intent(in), optional :: name
        integer(c_int), intent(in), optional :: synchronization, aggregation
        integer, intent(in), optional :: shards
        character(:), allocatable :: text
        text = c_null_char
        if (present(name)) text = trim(name)//c_null_char
        status = c_variable_create(self%handle, initial, text, synchronization, aggregation, shards, v%handle)
    end subroutine

    ! -- groups --

    ! The color of a replica that is in no group is -1.
    subroutine strategy_split(self, colors, groups, status, keys)
        class(strategy), intent(in) :: self
        integer(c_int32_t), intent(in) :: colors(:)
        type(grouping), intent(inout) :: groups
        integer, intent(out) :: status
        integer(c_int32_t), intent(in), target, optional :: keys(:)
        integer(c_int32_t), allocatable, target :: ordered(:)
        type(c_ptr) :: order
        if (exists(groups%handle, 'split: the grouping', status)) return
        order = c_null_ptr
        if (present(keys)) then
            if (refused(size(keys) /= size(colors), 'split: keys has another size than colors', status)) &
                return
            ordered = keys
            order = c_loc(ordered)
        end if
        status = c_split(self%handle, colors, order, size(colors, kind=c_int32_t), groups%handle)
        if (status < 0) groups%handle = c_null_ptr
    end subroutine

    ! Replica numbers count through the mesh as in C: the last axis runs fastest. groups(k) are those of the
    ! axis names(k), which has extents(k) places.
    subroutine strategy_mesh(self, names, extents, groups, status)
        class(strategy), intent(in) :: self
        character(*), intent(in) :: names(:)
        integer, intent(in) :: extents(:)
        type(grouping), intent(inout) :: groups(:)
        integer, intent(out) :: status
        type(text_list), target :: list
        type(c_ptr) :: handles(size(groups))
        integer :: i
        do i = 1, size(groups)
            if (exists(groups(i)%handle, 'mesh: a grouping', status)) return
        end do
        if (refused(size(extents) /= size(names) .or. size(groups) /= size(names), &
                    'mesh: names, extents and groups have different sizes', status)) return
        if (refused(any(extents < 0), 'mesh: an extent is negative', status)) return
        call list_texts(names, list)
        handles = c_null_ptr
        status = c_mesh(self%handle, list%pointers, int(extents, c_int32_t), &
                        size(names, kind=c_int32_t), handles)
        if (status < 0) return
        do i = 1, size(groups)
            groups(i)%handle = handles(i)
        end do
    end subroutine

    subroutine grouping_destroy(self, status)
        class(grouping), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy_grouping(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine

    ! -- variables, outside of runs --

    subroutine variable_read(self, x, status)
        class(variable), intent(in) :: self
        type(*), dimension(..) :: x
        integer, intent(out) :: status
        status = c_write(self%handle, x, 0_c_int)
    end subroutine

    subroutine variable_assign(self, x, status)
        class(variable), intent(in) :: self
        type(*), dimension(..), intent(in) :: x
        integer, intent(out) :: status
        status = c_write(self%handle, x, 1_c_int)
    end subroutine

    ! Copies rows: x(..., k) becomes row rows(k).
    subroutine variable_lookup(self, rows, x, status)
        class(variable), intent(in) :: self
        integer(c_int64_t), intent(in) :: rows(:)
        type(*), dimension(..) :: x
        integer, intent(out) :: status
        status = c_lookup(self%handle, rows, x)
    end subroutine

    ! Changes rows: x(..., k) is added to row rows(k), or whatever `op` says.
    subroutine variable_scatter(self, op, rows, x, status)
        class(variable), intent(in) :: self
        integer(c_int), intent(in) :: op
        integer(c_int64_t), intent(in) :: rows(:)
        type(*), dimension(..), intent(in) :: x
        integer, intent(out) :: status
        status = c_scatter(self%handle, op, rows, x)
    end subroutine

    subroutine variable_destroy(self, status)
        class(variable), intent(inout) :: self
        integer, intent(out) :: status
        status = c_variable_destroy(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine

    ! -- a replica --

    function replica_id(self) result(id)
        class(replica), intent(in) :: self
        integer :: id
        id = int(c_id(self%handle))
    end function

    function replica_num_replicas(self) result(n)
        class(replica), intent(in) :: self
        integer :: n
        n = int(c_size(self%handle))
    end function

    function replica_is_first_of_host(self) result(is)
        class(replica), intent(in) :: self
        logical :: is
        is = c_first_of_host(self%handle) /= 0
    end function

    ! Keeps the first error, and gives the status of this call. After an error no other replica uses arrays of
    ! this one any more, so the program's procedure may return. For statuses of C functions that a program
    ! calls itself.
    subroutine replica_keep(self, found, status)
        class(replica), intent(inout) :: self
        integer(c_int), intent(in) :: found
        integer, intent(out), optional :: status
        if (self%status == 0 .and. found < 0) self%status = c_abandon(self%handle, found)
        if (present(status)) status = found
    end subroutine

    ! Finds the group of this replica, for the argument `group` of collectives in this run.
    subroutine replica_group_of(self, groups, group, status)
        class(replica), intent(inout) :: self
        type(grouping), intent(in) :: groups
        type(replica_group), intent(out) :: group
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_group_of(self%handle, groups%handle, group), status)
    end subroutine

    ! Ends the run with a message, when the procedure returns.
    subroutine replica_fail(self, message, code)
        class(replica), intent(inout) :: self
        character(*), intent(in) :: message
        integer, intent(in), optional :: code
        integer(c_int32_t) :: number
        number = 0
        if (present(code)) number = int(code, c_int32_t)
        if (self%status == 0) call self%keep(c_fail(self%handle, number, trim(message)//c_null_char))
    end subroutine

    subroutine replica_barrier(self, status, label, group)
        class(replica), intent(inout) :: self
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) call self%keep(c_barrier(self%handle, label, group), status)
    end subroutine

    ! In place.
    subroutine replica_all_reduce(self, x, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..) :: x
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_reduce(self%handle, x, x, op, label, group), status)
    end subroutine

    subroutine replica_all_reduce_to(self, src, dst, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_reduce(self%handle, src, dst, op, label, group), status)
    end subroutine

    ! In place. The result is on the root alone.
    subroutine replica_reduce(self, x, root, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..) :: x
        integer, intent(in) :: root
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_reduce(self%handle, x, int(root, c_int), op, label, group), status)
    end subroutine

    subroutine replica_broadcast(self, x, root, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..) :: x
        integer, intent(in) :: root
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_broadcast(self%handle, x, int(root, c_int), label, group), status)
    end subroutine

    ! src has num_replicas() times as many elements as dst.
    subroutine replica_reduce_scatter(self, src, dst, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_reduce_scatter(self%handle, src, dst, op, label, group), status)
    end subroutine

    ! dst has num_replicas() times as many elements as src.
    subroutine replica_all_gather(self, src, dst, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_gather(self%handle, src, dst, label, group), status)
    end subroutine

    ! Part k of src goes to replica k, from 0. Without counts all parts are equal. src and dst may be one
    ! array.
    subroutine replica_all_to_all(self, src, dst, status, label, src_counts, dst_counts, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..) :: src, dst
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        integer(c_size_t), intent(in), contiguous, optional :: src_counts(:), dst_counts(:)
        if (ready(self%status, status)) &
            call self%keep(c_all_to_all(self%handle, src, dst, src_counts, dst_counts, label, group), status)
    end subroutine

    ! The root gets the elements of all replicas in dst, which is not looked at on others. counts are those of
    ! all replicas, if they have different numbers of elements.
    subroutine replica_gather_to_root(self, src, dst, root, status, label, counts, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer, intent(in) :: root
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        integer(c_size_t), intent(in), contiguous, optional :: counts(:)
        if (ready(self%status, status)) &
            call self%keep(c_gather_to_root(self%handle, src, dst, counts, int(root, c_int), label, group), &
                           status)
    end subroutine

    ! Each replica gets its part of the root's src, which is not looked at on others.
    subroutine replica_scatter_from_root(self, src, dst, root, status, label, counts, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer, intent(in) :: root
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        integer(c_size_t), intent(in), contiguous, optional :: counts(:)
        if (ready(self%status, status)) &
            call self%keep(c_scatter_from_root(self%handle, src, dst, counts, int(root, c_int), label, &
                                               group), status)
    end subroutine

    ! dst receives what the replicas up to this one have together.
    subroutine replica_scan(self, src, dst, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_scan(self%handle, src, dst, op, label, group, 0_c_int), status)
    end subroutine

    ! dst receives what the replicas before this one have together. On replica 0 it stays as it is.
    subroutine replica_scan_exclusive(self, src, dst, op, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: src
        type(*), dimension(..) :: dst
        integer(c_int), intent(in) :: op
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_scan(self%handle, src, dst, op, label, group, 1_c_int), status)
    end subroutine

    ! A text, or a part of one, as text(1:n). Its length is equal on all replicas.
    subroutine replica_broadcast_text(self, text, root, status, group)
        class(replica), intent(inout) :: self
        character(*), intent(inout), target :: text
        integer, intent(in) :: root
        integer, intent(out), optional :: status
        type(replica_group), intent(in), optional :: group
        integer(c_int8_t), pointer :: bytes(:)
        call c_f_pointer(c_loc(text), bytes, [len(text)])
        call self%broadcast(bytes, root, status, group=group)
    end subroutine

    ! In place. The procedure of replica 0 is called with the combined array, and all replicas receive what it
    ! leaves there.
    subroutine replica_all_reduce_through(self, x, op, function, user, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..) :: x
        integer(c_int), intent(in) :: op
        procedure(through_procedure) :: function
        class(*), intent(inout), target :: user
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        type(through_call), target :: call
        call%function => function
        call%user => user
        if (ready(self%status, status)) &
            call self%keep(c_all_reduce_through(self%handle, x, op, c_funloc(on_combined), c_loc(call), &
                                                label, group), status)
    end subroutine

    ! What C calls with a combined array.
    function on_combined(buffer, count, dtype, user) bind(c) result(status)
        type(c_ptr), value :: buffer, user
        integer(c_size_t), value :: count
        integer(c_int), value :: dtype
        integer(c_int) :: status
        type(through_call), pointer :: call
        call c_f_pointer(user, call)
        status = ditto_ok
        call call%function(row_of(buffer, count, dtype), call%user, status)
    end function

    ! A view of memory of C.
    function row_of(data, count, dtype) result(view)
        type(c_ptr), intent(in) :: data
        integer(c_size_t), intent(in) :: count
        integer(c_int), intent(in) :: dtype
        type(tensor) :: view
        view%data = data
        view%dtype = dtype
        view%rank = 1
        view%shape(1) = count
    end function

    ! The sum over the elements of all replicas, whose bits do not depend on their number. `total` is a scalar
    ! of the type of the elements.
    subroutine replica_block_sum(self, x, total, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: x
        type(*), dimension(..) :: total
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_block_sum(self%handle, x, total, label, group), status)
    end subroutine

    ! The same for `count` elements of each replica that a procedure computes.
    subroutine replica_block_sum_with(self, count, function, user, total, status, label, group)
        class(replica), intent(inout) :: self
        integer(c_size_t), intent(in) :: count
        procedure(elements_procedure) :: function
        class(*), intent(inout), target :: user
        type(*), dimension(..) :: total
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        type(elements_call), target :: call
        call%function => function
        call%user => user
        if (ready(self%status, status)) &
            call self%keep(c_block_sum_with(self%handle, c_funloc(on_elements), c_loc(call), call%dtype, &
                                            count, total, label, group), status)
    end subroutine

    ! What C calls for elements of a sum.
    function on_elements(out, first, count, user) bind(c) result(status)
        type(c_ptr), value :: out, user
        integer(c_size_t), value :: first, count
        integer(c_int) :: status
        type(elements_call), pointer :: call
        call c_f_pointer(user, call)
        status = ditto_ok
        call call%function(row_of(out, count, call%dtype), first + 1, call%user, status)
    end function

    ! The dot product over the elements of all replicas, whose bits do not depend on their number. `total` is
    ! a scalar of the factors' type.
    subroutine replica_block_dot(self, x, y, total, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in) :: x, y
        type(*), dimension(..) :: total
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_block_dot(self%handle, x, y, total, label, group), status)
    end subroutine

    ! -- operations that are waited for later --
    !
    ! The arrays must be declared asynchronous where the operation is started and waited for, so that the
    ! compiler does not move accesses to them. An array that the compiler must copy, as a(index) with a vector
    ! of indices, cannot be recognized: never pass one.

    subroutine replica_start_all_reduce(self, src, dst, op, operation, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in), asynchronous :: src
        type(*), dimension(..), asynchronous :: dst
        integer(c_int), intent(in) :: op
        type(pending), intent(inout) :: operation
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_reduce(self%handle, src, dst, op, label, group, operation), status)
    end subroutine

    subroutine replica_start_reduce_scatter(self, src, dst, op, operation, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in), asynchronous :: src
        type(*), dimension(..), asynchronous :: dst
        integer(c_int), intent(in) :: op
        type(pending), intent(inout) :: operation
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_reduce_scatter(self%handle, src, dst, op, label, group, operation), status)
    end subroutine

    subroutine replica_start_all_gather(self, src, dst, operation, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), intent(in), asynchronous :: src
        type(*), dimension(..), asynchronous :: dst
        type(pending), intent(inout) :: operation
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_gather(self%handle, src, dst, label, group, operation), status)
    end subroutine

    subroutine replica_start_all_to_all(self, src, dst, operation, status, label, group)
        class(replica), intent(inout) :: self
        type(*), dimension(..), asynchronous :: src, dst
        type(pending), intent(inout) :: operation
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_all_to_all(self%handle, src, dst, label=label, group=group, out=operation), &
                           status)
    end subroutine

    subroutine replica_wait(self, operation, status)
        class(replica), intent(inout) :: self
        type(pending), intent(inout) :: operation
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_wait(self%handle, operation, c_null_ptr), status)
    end subroutine

    ! `complete` is true if the operation is complete, and counts as waited for, and after an error.
    subroutine replica_test(self, operation, complete, status)
        class(replica), intent(inout) :: self
        type(pending), intent(inout) :: operation
        logical, intent(out) :: complete
        integer, intent(out), optional :: status
        integer(c_int) :: found
        found = self%status
        if (found == 0) found = c_test(self%handle, operation)
        complete = found <= 0
        call self%keep(found, status)
    end subroutine

    ! -- borders --

    ! Makes a part of an exchange: the partner gets src, and gives dst. Both stay where they are.
    subroutine replica_part(self, partner, tag, src, dst, part, status)
        class(replica), intent(inout) :: self
        integer, intent(in) :: partner, tag
        type(*), dimension(..), intent(in), asynchronous :: src
        type(*), dimension(..), asynchronous :: dst
        type(exchange_part), intent(out) :: part
        integer, intent(out), optional :: status
        part%replica = int(partner, c_int32_t)
        part%tag = int(tag, c_int32_t)
        if (ready(self%status, status)) call self%keep(c_part(src, dst, part), status)
    end subroutine

    subroutine replica_exchange(self, parts, status, label, group)
        class(replica), intent(inout) :: self
        type(exchange_part), intent(in), contiguous :: parts(:)
        integer, intent(out), optional :: status
        character(*), intent(in), optional :: label
        type(replica_group), intent(in), optional :: group
        if (ready(self%status, status)) &
            call self%keep(c_exchange(self%handle, parts, size(parts, kind=c_size_t), label, group), status)
    end subroutine

    ! -- variables, in a run --

    subroutine replica_read(self, v, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        type(*), dimension(..) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_write(v%handle, x, 0_c_int, self%handle), status)
    end subroutine

    subroutine replica_assign(self, v, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        type(*), dimension(..), intent(in) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_write(v%handle, x, 1_c_int, self%handle), status)
    end subroutine

    subroutine replica_assign_add(self, v, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        type(*), dimension(..), intent(in) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_write(v%handle, x, 2_c_int, self%handle), status)
    end subroutine

    subroutine replica_assign_sub(self, v, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        type(*), dimension(..), intent(in) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) call self%keep(c_write(v%handle, x, 3_c_int, self%handle), status)
    end subroutine

    ! Copies rows: x(..., k) becomes row rows(k).
    subroutine replica_lookup(self, v, rows, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        integer(c_int64_t), intent(in) :: rows(:)
        type(*), dimension(..) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) &
            call self%keep(c_lookup(v%handle, rows, x, self%handle), status)
    end subroutine

    ! Changes rows: x(..., k) is added to row rows(k), or whatever `op` says. Collective, except for
    ! parameters.
    subroutine replica_scatter(self, v, op, rows, x, status)
        class(replica), intent(inout) :: self
        type(variable), intent(in) :: v
        integer(c_int), intent(in) :: op
        integer(c_int64_t), intent(in) :: rows(:)
        type(*), dimension(..), intent(in) :: x
        integer, intent(out), optional :: status
        if (ready(self%status, status)) &
            call self%keep(c_scatter(v%handle, op, rows, x, self%handle), status)
    end subroutine

    ! -- memory on the replica's own NUMA node --

    ! Gives memory for c_f_pointer, aligned to 64 bytes, or a null pointer.
    subroutine replica_alloc(self, bytes, memory, status)
        class(replica), intent(inout) :: self
        integer(c_size_t), intent(in) :: bytes
        type(c_ptr), intent(out) :: memory
        integer, intent(out), optional :: status
        memory = c_null_ptr
        if (ready(self%status, status)) &
            call self%keep(c_alloc(self%handle, bytes, 64_c_size_t, memory), status)
    end subroutine

    ! Frees the memory, also after an error.
    subroutine replica_free(self, memory)
        class(replica), intent(inout) :: self
        type(c_ptr), intent(inout) :: memory
        call self%keep(c_free(self%handle, memory))
        memory = c_null_ptr
    end subroutine
end module
