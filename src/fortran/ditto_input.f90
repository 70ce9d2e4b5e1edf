! src/fortran/ditto_input.f90 - datasets, iterators and batches in Fortran.
!
! A dataset is a list of rows. One is made from arrays, files or numbers, and then changed: shuffled,
! repeated, batched. Each change replaces the dataset in its object. An iterator delivers its rows to the
! replicas of a strategy, one batch after another:
!
!     call rows%from_csv('digits.csv', [csv_columns(1, 64, ditto_f64), csv_columns(65, 1, ditto_i32)], status)
!     if (status == 0) call rows%shuffle(status)
!     if (status == 0) call rows%batch(32, status)
!     if (status == 0) call steps%create(s, rows, status)
!
! and in a procedure of a run:
!
!     do
!         call steps%next(self, b, status)
!         if (status /= ditto_ok) exit
!         call c_f_pointer(b%component(1)%data, images, extents(b%component(1)))
!         ...
!     end do
!
! The rules are those of the C headers ditto/dataset.h, ditto/source.h, ditto/transform.h and
! ditto/distribute.h. The first dimension of a batch in C, its rows, is the last one in Fortran. Numbers of
! columns and components are counted from 1.
module ditto_input
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_internal
    implicit none
    private

    public :: dataset, iterator, batch, input_options, csv_component, csv_options, csv_columns, csv_text
    public :: map_function, map_procedure, filter_function, filter_procedure, tensor_component, input_sizes

    integer(c_int), parameter, public :: ditto_shard_default = 0, ditto_shard_auto = 1, &
                                         ditto_shard_file = 2, ditto_shard_data = 3, ditto_shard_off = 4
    integer(c_int), parameter, public :: ditto_partial_default = 0, ditto_partial_fill = 1, &
                                         ditto_partial_even = 2
    integer(c_int), parameter, public :: ditto_replication_default = 0, ditto_replication_per_pipeline = 1, &
                                         ditto_replication_per_replica = 2
    integer(c_int), parameter, public :: ditto_csv_missing_default = 0, ditto_csv_missing_error = 1, &
                                         ditto_csv_missing_value = 2
    integer(c_int), parameter, public :: ditto_compression_default = 0, ditto_compression_gzip = 1
    integer(c_int32_t), parameter, public :: ditto_batch_drop_remainder = 1, ditto_files_glob = 1, &
                                             ditto_input_static = 1, ditto_input_host_memory = 2, &
                                             ditto_no_prefetch = -1
    integer(c_int64_t), parameter, public :: ditto_repeat_forever = -1
    integer, parameter :: most_components = 16

    ! -- types --

    ! The options of an iterator, as ditto_input_options has them. The components have their defaults.
    type, bind(c) :: input_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: global_batch = 0
        integer(c_int32_t) :: buffer = 0
        integer(c_int32_t) :: num_producers = 0
        integer(c_int) :: partial = 0
        integer(c_int64_t) :: pass = 0
        integer(c_int32_t) :: num_pipelines = 0
        integer(c_int) :: shard = 0
        integer(c_int) :: replication = 0
        integer(c_int32_t) :: flags = 0
        integer(c_int64_t) :: max_bytes = 0
        type(c_ptr) :: state = c_null_ptr
        integer(c_size_t) :: state_bytes = 0
    end type

    ! Columns of a CSV file that make one component, as ditto_csv_component. Made by csv_columns or csv_text.
    type, bind(c) :: csv_component
        integer(c_int32_t) :: first_column = 0
        integer(c_int32_t) :: num_columns = 0
        integer(c_int) :: dtype = 0
        integer(c_int32_t) :: text_bytes = 0
        integer(c_int) :: missing = 0
        real(c_double) :: missing_value = 0
    end type

    ! The options of from_csv, as ditto_csv_options has them. The components have their defaults.
    type, bind(c) :: csv_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: num_columns = 0
        integer(c_int32_t) :: skip_lines = 0
        character(kind=c_char) :: delimiter = c_null_char
        integer(c_int) :: no_quotes = 0
        integer(c_int) :: compression = 0
    end type

    ! The rows of one replica in one step. They are valid until the replica asks for its next batch.
    type, bind(c) :: batch
        ! 0 if this replica has no rows in this step. It takes part in the step's collectives all the same.
        integer(c_int64_t) :: rows = 0
        integer(c_int64_t) :: step = 0
        integer(c_int32_t) :: num_components = 0
        type(tensor) :: component(most_components) = tensor()
    end type

    ! A procedure that computes the components `new` of a new row from those of a row. `status` is 0, or the
    ! result of `failure`. It runs on threads of the library, several at a time.
    abstract interface
        subroutine map_procedure(row, new, user, status)
            import :: tensor, c_int
            type(tensor), intent(in) :: row(:), new(:)
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine

        ! A procedure that decides whether a row stays: `keep` is true before the call.
        subroutine filter_procedure(row, keep, user, status)
            import :: tensor, c_int
            type(tensor), intent(in) :: row(:)
            logical, intent(inout) :: keep
            class(*), intent(inout) :: user
            integer(c_int), intent(inout) :: status
        end subroutine
    end interface

    ! The procedure of one map, and what it gets. The object must exist as long as any dataset or iterator
    ! uses it. Another map of rows with other components needs an object of its own.
    type :: map_function
        procedure(map_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
        integer, private :: num_old = 0, num_new = 0
    end type

    ! The procedure of one filter, and what it gets. The object must exist as long as any dataset or iterator
    ! uses it. Another filter of rows with other components needs an object of its own.
    type :: filter_function
        procedure(filter_procedure), pointer, nopass :: function => null()
        class(*), pointer :: user => null()
        integer, private :: num_old = 0
    end type

    ! A dataset. It is destroyed by destroy, and not when the object goes out of scope.
    type :: dataset
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: from_range => dataset_from_range
        procedure, non_overridable :: from_arrays => dataset_from_arrays
        procedure, non_overridable :: from_csv => dataset_from_csv
        procedure, non_overridable :: from_text => dataset_from_text
        procedure, non_overridable :: from_npy => dataset_from_npy
        procedure, non_overridable :: from_fixed => dataset_from_fixed
        procedure, non_overridable :: from_tfrecord => dataset_from_tfrecord
        procedure, non_overridable :: from_dataset => dataset_from_dataset
        procedure, non_overridable :: from_all => dataset_from_all
        procedure, non_overridable :: map => dataset_map
        procedure, non_overridable :: filter => dataset_filter
        procedure, non_overridable :: shuffle => dataset_shuffle
        procedure, non_overridable :: repeat => dataset_repeat
        procedure, non_overridable :: take => dataset_take
        procedure, non_overridable :: skip => dataset_skip
        procedure, non_overridable :: shard => dataset_shard
        procedure, non_overridable :: batch => dataset_batch
        procedure, non_overridable :: unbatch => dataset_unbatch
        procedure, non_overridable :: prefetch => dataset_prefetch
        procedure, non_overridable :: destroy => dataset_destroy
        procedure, private, non_overridable :: replace => dataset_replace
    end type

    ! One pass over a dataset. It is destroyed by destroy, and not when the object goes out of scope.
    type :: iterator
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: create => iterator_create
        procedure, non_overridable :: next => iterator_next
        procedure, non_overridable :: save => iterator_save
        procedure, non_overridable :: destroy => iterator_destroy
    end type

    ! -- C --

    type, bind(c) :: c_files
        type(c_ptr) :: names = c_null_ptr
        integer(c_int32_t) :: num_names = 0
        integer(c_int32_t) :: flags = 0
    end type

    type, bind(c) :: text_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: max_bytes = 0
        integer(c_int64_t) :: skip_lines = 0
        integer(c_int) :: compression = 0
    end type

    type, bind(c) :: fixed_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: header_bytes = 0
        integer(c_int64_t) :: footer_bytes = 0
        integer(c_int) :: big_endian = 0
        integer(c_int64_t) :: stride_bytes = 0
    end type

    type, bind(c) :: tfrecord_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: max_bytes = 0
        integer(c_int) :: compression = 0
        integer(c_int) :: trust = 0
    end type

    type, bind(c) :: shuffle_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: seed = 0
        integer(c_int64_t) :: buffer_rows = 0
        integer(c_int) :: reshuffle = 0
    end type

    type, bind(c) :: map_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: row = c_null_ptr
        integer(c_int32_t) :: num_components = 0
        integer(c_int64_t) :: seed = 0
    end type

    type, bind(c) :: element_spec
        integer(c_int32_t) :: num_components = 0
        type(tensor) :: component(most_components) = tensor()
        integer(c_int64_t) :: batch = 0
        integer(c_int) :: infinite = 0
    end type

    interface
        function c_from_range(start, stop, step, out) bind(c, name='ditto_dataset_from_range') result(status)
            import
            integer(c_int64_t), value :: start, stop, step
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_arrays(arrays, n, out) bind(c, name='ditto_dataset_from_arrays') result(status)
            import
            type(tensor), intent(in) :: arrays(*)
            integer(c_int32_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_csv(files, components, n, options, out) bind(c, name='ditto_dataset_from_csv') &
            result(status)
            import
            type(c_files), intent(in) :: files
            type(csv_component), intent(in) :: components(*)
            integer(c_int32_t), value :: n
            type(csv_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_text(files, options, out) bind(c, name='ditto_dataset_from_text') result(status)
            import
            type(c_files), intent(in) :: files
            type(text_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_npy(names, n, out) bind(c, name='ditto_dataset_from_npy') result(status)
            import
            type(c_ptr), value :: names
            integer(c_int32_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_fixed(files, row, n, options, out) bind(c, name='ditto_dataset_from_fixed') &
            result(status)
            import
            type(c_files), intent(in) :: files
            type(tensor), intent(in) :: row(*)
            integer(c_int32_t), value :: n
            type(fixed_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_from_tfrecord(files, options, out) bind(c, name='ditto_dataset_from_tfrecord') &
            result(status)
            import
            type(c_files), intent(in) :: files
            type(tfrecord_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_zip(inputs, n, out) bind(c, name='ditto_dataset_zip') result(status)
            import
            type(c_ptr), intent(in) :: inputs(*)
            integer(c_int32_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_concatenate(inputs, n, out) bind(c, name='ditto_dataset_concatenate') result(status)
            import
            type(c_ptr), intent(in) :: inputs(*)
            integer(c_int32_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_interleave(inputs, n, cycle, block, out) bind(c, name='ditto_dataset_interleave') &
            result(status)
            import
            type(c_ptr), intent(in) :: inputs(*)
            integer(c_int32_t), value :: n, cycle
            integer(c_int64_t), value :: block
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_map(input, function, user, options, out) bind(c, name='ditto_dataset_map') result(status)
            import
            type(c_ptr), value :: input, user
            type(c_funptr), value :: function
            type(map_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_filter(input, function, user, out) bind(c, name='ditto_dataset_filter') result(status)
            import
            type(c_ptr), value :: input, user
            type(c_funptr), value :: function
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_shuffle(input, options, out) bind(c, name='ditto_dataset_shuffle') result(status)
            import
            type(c_ptr), value :: input
            type(shuffle_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_repeat(input, count, out) bind(c, name='ditto_dataset_repeat') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: count
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_take(input, count, out) bind(c, name='ditto_dataset_take') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: count
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_skip(input, count, out) bind(c, name='ditto_dataset_skip') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: count
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_shard(input, num_shards, index, out) bind(c, name='ditto_dataset_shard') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: num_shards, index
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_batch(input, rows, flags, out) bind(c, name='ditto_dataset_batch') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: rows
            integer(c_int32_t), value :: flags
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_unbatch(input, out) bind(c, name='ditto_dataset_unbatch') result(status)
            import
            type(c_ptr), value :: input
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_prefetch(input, n, out) bind(c, name='ditto_dataset_prefetch') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int64_t), value :: n
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_spec(input, out) bind(c, name='ditto_dataset_spec') result(status)
            import
            type(c_ptr), value :: input
            type(element_spec), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_destroy(input) bind(c, name='ditto_dataset_destroy') result(status)
            import
            type(c_ptr), value :: input
            integer(c_int) :: status
        end function
        function c_iterate(strategy, rows, options, out) bind(c, name='ditto_strategy_iterate') result(status)
            import
            type(c_ptr), value :: strategy, rows
            type(input_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_next(self, steps, out) bind(c, name='ditto_next') result(status)
            import
            type(c_ptr), value :: self, steps
            type(batch), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_save(steps, state, bytes) bind(c, name='ditto_iterator_save') result(status)
            import
            type(c_ptr), value :: steps
            type(c_ptr), intent(out) :: state
            integer(c_size_t), intent(out) :: bytes
            integer(c_int) :: status
        end function
        subroutine c_state_free(state) bind(c, name='ditto_state_free')
            import
            type(c_ptr), value :: state
        end subroutine
        function c_iterator_destroy(steps) bind(c, name='ditto_iterator_destroy') result(status)
            import
            type(c_ptr), value :: steps
            integer(c_int) :: status
        end function
    end interface

    ! What a procedure gets if the program gives nothing.
    integer, target, save :: nothing = 0

contains

    ! The bytes of the types that C has too, for a test.
    function input_sizes() result(bytes)
        integer(c_size_t) :: bytes(11)
        bytes = [storage_size(input_options()), storage_size(csv_component()), storage_size(csv_options()), &
                 storage_size(batch()), storage_size(c_files()), storage_size(text_options()), &
                 storage_size(fixed_options()), storage_size(tfrecord_options()), &
                 storage_size(shuffle_options()), storage_size(map_options()), storage_size(element_spec())]/8
    end function

    ! -- what rows are made of --

    ! `count` columns of a CSV file from `first` on, counted from 1, with elements of a dtype.
    function csv_columns(first, count, dtype) result(component)
        integer, intent(in) :: first, count
        integer(c_int), intent(in) :: dtype
        type(csv_component) :: component
        component%first_column = int(first - 1, c_int32_t)
        component%num_columns = int(count, c_int32_t)
        component%dtype = dtype
    end function

    ! A column of text, which becomes `bytes` elements of u8, filled up with zeros.
    function csv_text(column, bytes) result(component)
        integer, intent(in) :: column, bytes
        type(csv_component) :: component
        component = csv_columns(column, 1, ditto_u8)
        component%text_bytes = int(bytes, c_int32_t)
    end function

    ! A component of rows that are not there yet, for map and from_fixed: its dtype and its dimensions, in the
    ! order of Fortran.
    function tensor_component(dtype, dimensions) result(component)
        integer(c_int), intent(in) :: dtype
        integer, intent(in), optional :: dimensions(:)
        type(tensor) :: component
        component%dtype = dtype
        if (.not. present(dimensions)) return
        component%rank = int(size(dimensions), c_int32_t)
        if (size(dimensions) > size(component%shape)) return ! refused by its rank
        component%shape(1:size(dimensions)) = dimensions(size(dimensions):1:-1)
    end function

    ! Files as C has them. `list` keeps their names.
    function files_of(names, list, glob) result(files)
        character(*), intent(in) :: names(:)
        type(text_list), intent(out), target :: list
        logical, intent(in), optional :: glob
        type(c_files) :: files
        call list_texts(names, list)
        files%names = c_loc(list%pointers)
        files%num_names = size(list%pointers, kind=c_int32_t)
        if (present(glob)) then
            if (glob) files%flags = ditto_files_glob
        end if
    end function

    ! -- datasets --

    ! Whether there is a dataset already, which is an error of a procedure that makes one.
    function has_rows(self, procedure, status) result(has)
        class(dataset), intent(in) :: self
        character(*), intent(in) :: procedure
        integer, intent(out) :: status
        logical :: has
        has = refused(c_associated(self%handle), procedure//': the object has a dataset: destroy it first', &
                      status)
    end function

    ! Whether a number is below the least one that is allowed. In C it would become a very large one.
    function is_below(value, least, what, status) result(is)
        integer(c_int64_t), intent(in) :: value, least
        character(*), intent(in) :: what
        integer, intent(out) :: status
        logical :: is
        character(80) :: text
        write (text, '(i0, a, i0)') value, ': give at least ', least
        is = refused(value < least, what//' is '//text, status)
    end function

    ! Replaces the dataset by one that was made from it, if it was made.
    subroutine dataset_replace(self, made, status)
        class(dataset), intent(inout) :: self
        type(c_ptr), intent(in) :: made
        integer, intent(in) :: status
        integer(c_int) :: ignored
        if (status < 0) return
        ignored = c_destroy(self%handle)
        self%handle = made
    end subroutine

    ! The numbers from `start` to `stop`, which is not included. A row has one integer of 8 bytes.
    subroutine dataset_from_range(self, start, stop, status, step)
        class(dataset), intent(inout) :: self
        integer(c_int64_t), intent(in) :: start, stop
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: step
        integer(c_int64_t) :: by
        by = 1
        if (present(step)) by = step
        if (.not. has_rows(self, 'from_range', status)) status = c_from_range(start, stop, by, self%handle)
    end subroutine

    ! Row i has the elements with the last index i of each array: call rows%from_arrays([tensor_of(images),
    ! tensor_of(labels)], status). The arrays are targets, and stay as long as the dataset.
    subroutine dataset_from_arrays(self, arrays, status)
        class(dataset), intent(inout) :: self
        type(tensor), intent(in) :: arrays(:)
        integer, intent(out) :: status
        status = check_views('from_arrays', arrays)
        if (status < 0) return
        if (.not. has_rows(self, 'from_arrays', status)) &
            status = c_from_arrays(arrays, size(arrays, kind=c_int32_t), self%handle)
    end subroutine

    ! With `glob`, the name is a pattern.
    subroutine dataset_from_csv(self, name, components, status, options, glob)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: name
        type(csv_component), intent(in) :: components(:)
        integer, intent(out) :: status
        type(csv_options), intent(in), optional :: options
        logical, intent(in), optional :: glob
        type(csv_options) :: given
        type(text_list), target :: list
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        if (is_below(int(given%skip_lines, c_int64_t), 0_c_int64_t, 'from_csv: skip_lines', status)) return
        if (.not. has_rows(self, 'from_csv', status)) &
            status = c_from_csv(files_of([name], list, glob), components, size(components, kind=c_int32_t), &
                                given, self%handle)
    end subroutine

    ! Rows have max_bytes elements of u8 and a length. Without max_bytes, these are 1024.
    subroutine dataset_from_text(self, name, status, max_bytes, skip_lines, glob, gzip)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: max_bytes, skip_lines
        logical, intent(in), optional :: glob, gzip
        type(text_options) :: given
        type(text_list), target :: list
        if (present(max_bytes)) given%max_bytes = max_bytes
        if (present(skip_lines)) given%skip_lines = skip_lines
        if (present(gzip)) given%compression = merge(1_c_int, 0_c_int, gzip)
        if (is_below(given%max_bytes, 0_c_int64_t, 'from_text: max_bytes', status)) return
        if (is_below(given%skip_lines, 0_c_int64_t, 'from_text: skip_lines', status)) return
        given%struct_size = c_sizeof(given)
        if (.not. has_rows(self, 'from_text', status)) &
            status = c_from_text(files_of([name], list, glob), given, self%handle)
    end subroutine

    ! One .npy file for each component.
    subroutine dataset_from_npy(self, names, status)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: names(:)
        integer, intent(out) :: status
        type(text_list), target :: list
        type(c_files) :: files
        files = files_of(names, list)
        if (.not. has_rows(self, 'from_npy', status)) &
            status = c_from_npy(files%names, files%num_names, self%handle)
    end subroutine

    ! Records of equal length. `row` has a tensor_component for each component.
    subroutine dataset_from_fixed(self, name, row, status, header_bytes, footer_bytes, stride_bytes, &
                                  big_endian, glob)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: name
        type(tensor), intent(in) :: row(:)
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: header_bytes, footer_bytes, stride_bytes
        logical, intent(in), optional :: big_endian, glob
        type(fixed_options) :: given
        type(text_list), target :: list
        if (present(header_bytes)) given%header_bytes = header_bytes
        if (present(footer_bytes)) given%footer_bytes = footer_bytes
        if (present(stride_bytes)) given%stride_bytes = stride_bytes
        if (present(big_endian)) given%big_endian = merge(1_c_int, 0_c_int, big_endian)
        if (is_below(given%header_bytes, 0_c_int64_t, 'from_fixed: header_bytes', status)) return
        if (is_below(given%footer_bytes, 0_c_int64_t, 'from_fixed: footer_bytes', status)) return
        if (is_below(given%stride_bytes, 0_c_int64_t, 'from_fixed: stride_bytes', status)) return
        given%struct_size = c_sizeof(given)
        if (.not. has_rows(self, 'from_fixed', status)) &
            status = c_from_fixed(files_of([name], list, glob), row, size(row, kind=c_int32_t), given, &
                                  self%handle)
    end subroutine

    ! Rows have max_bytes elements of u8 and a length. Without max_bytes, these are 65536.
    subroutine dataset_from_tfrecord(self, name, status, max_bytes, gzip, glob)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: max_bytes
        logical, intent(in), optional :: gzip, glob
        type(tfrecord_options) :: given
        type(text_list), target :: list
        if (present(max_bytes)) given%max_bytes = max_bytes
        if (present(gzip)) given%compression = merge(1_c_int, 0_c_int, gzip)
        if (is_below(given%max_bytes, 0_c_int64_t, 'from_tfrecord: max_bytes', status)) return
        given%struct_size = c_sizeof(given)
        if (.not. has_rows(self, 'from_tfrecord', status)) &
            status = c_from_tfrecord(files_of([name], list, glob), given, self%handle)
    end subroutine

    ! The same rows as another dataset, which stays as it is.
    subroutine dataset_from_dataset(self, rows, status)
        class(dataset), intent(inout) :: self
        type(dataset), intent(in) :: rows
        integer, intent(out) :: status
        if (.not. has_rows(self, 'from_dataset', status)) &
            status = c_skip(rows%handle, 0_c_int64_t, self%handle)
    end subroutine

    ! The rows of several datasets: 'zip' has their components in one row, 'concatenate' has one dataset after
    ! another, 'interleave' has them in turns.
    subroutine dataset_from_all(self, how, datasets, status)
        class(dataset), intent(inout) :: self
        character(*), intent(in) :: how
        type(dataset), intent(in) :: datasets(:)
        integer, intent(out) :: status
        type(c_ptr) :: inputs(size(datasets))
        integer(c_int32_t) :: n
        integer :: i
        n = size(datasets, kind=c_int32_t)
        inputs = [(datasets(i)%handle, i=1, n)]
        if (has_rows(self, 'from_all', status)) return
        select case (how)
        case ('zip')
            status = c_zip(inputs, n, self%handle)
        case ('concatenate')
            status = c_concatenate(inputs, n, self%handle)
        case ('interleave')
            status = c_interleave(inputs, n, 0_c_int32_t, 1_c_int64_t, self%handle)
        case default
            status = failure('from_all: "'//how//'" is not zip, concatenate or interleave')
        end select
    end subroutine

    ! Computes each row from another. `row` has a tensor_component for each new component. Without it, the new
    ! rows are like the old ones.
    subroutine dataset_map(self, function, status, row)
        class(dataset), intent(inout) :: self
        type(map_function), intent(inout), target :: function
        integer, intent(out) :: status
        type(tensor), intent(in), optional :: row(:)
        type(map_options) :: given
        type(element_spec) :: spec
        type(tensor), allocatable, target :: new(:)
        type(c_ptr) :: made
        integer :: num_new
        status = c_spec(self%handle, spec)
        if (status < 0) return
        if (refused(.not. associated(function%function), 'map: the map_function has no function', status)) &
            return
        num_new = spec%num_components
        given%struct_size = c_sizeof(given)
        if (present(row)) then
            new = row
            num_new = size(row)
            given%row = c_loc(new)
            given%num_components = size(row, kind=c_int32_t)
        end if
        if (refused(function%num_old /= 0 .and. (function%num_old /= spec%num_components .or. &
                                                 function%num_new /= num_new), &
                    'map: the map_function belongs to a map of other components: use another object', &
                    status)) return
        function%num_old = spec%num_components
        function%num_new = num_new
        if (.not. associated(function%user)) function%user => nothing
        status = c_map(self%handle, c_funloc(on_map), c_loc(function), given, made)
        call self%replace(made, status)
    end subroutine

    ! Keeps the rows for which the procedure leaves `keep` true.
    subroutine dataset_filter(self, function, status)
        class(dataset), intent(inout) :: self
        type(filter_function), intent(inout), target :: function
        integer, intent(out) :: status
        type(element_spec) :: spec
        type(c_ptr) :: made
        status = c_spec(self%handle, spec)
        if (status < 0) return
        if (refused(.not. associated(function%function), 'filter: the filter_function has no function', &
                    status)) return
        if (refused(function%num_old /= 0 .and. function%num_old /= spec%num_components, &
                    'filter: the filter_function belongs to a filter of other components: '// &
                    'use another object', status)) return
        function%num_old = spec%num_components
        if (.not. associated(function%user)) function%user => nothing
        status = c_filter(self%handle, c_funloc(on_filter), c_loc(function), made)
        call self%replace(made, status)
    end subroutine

    ! What C calls for a row of a map.
    function on_map(old, new, random, user) bind(c) result(status)
        type(c_ptr), value :: old, new, random, user
        integer(c_int) :: status
        type(map_function), pointer :: f
        type(tensor), pointer :: from(:), to(:)
        associate (unused => random)
        end associate
        call c_f_pointer(user, f)
        call c_f_pointer(old, from, [f%num_old])
        call c_f_pointer(new, to, [f%num_new])
        status = ditto_ok
        call f%function(from, to, f%user, status)
    end function

    ! What C calls for a row of a filter.
    function on_filter(old, user, keep) bind(c) result(status)
        type(c_ptr), value :: old, user
        integer(c_int), intent(inout) :: keep
        integer(c_int) :: status
        type(filter_function), pointer :: f
        type(tensor), pointer :: from(:)
        logical :: stays
        call c_f_pointer(user, f)
        call c_f_pointer(old, from, [f%num_old])
        status = ditto_ok
        stays = .true.
        call f%function(from, stays, f%user, status)
        keep = merge(1_c_int, 0_c_int, stays)
    end function

    ! All rows in a random order, or each row drawn from a buffer of the next `buffer_rows` rows. Each pass
    ! has another order, unless `same_order` is true.
    subroutine dataset_shuffle(self, status, seed, buffer_rows, same_order)
        class(dataset), intent(inout) :: self
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: seed, buffer_rows
        logical, intent(in), optional :: same_order
        type(shuffle_options) :: given
        type(c_ptr) :: made
        if (present(seed)) given%seed = seed
        if (present(buffer_rows)) given%buffer_rows = buffer_rows
        if (present(same_order)) given%reshuffle = merge(2_c_int, 1_c_int, same_order)
        if (is_below(given%buffer_rows, 0_c_int64_t, 'shuffle: buffer_rows', status)) return
        given%struct_size = c_sizeof(given)
        status = c_shuffle(self%handle, given, made)
        call self%replace(made, status)
    end subroutine

    ! ditto_repeat_forever: without end.
    subroutine dataset_repeat(self, count, status)
        class(dataset), intent(inout) :: self
        integer(c_int64_t), intent(in) :: count
        integer, intent(out) :: status
        type(c_ptr) :: made
        if (is_below(count, ditto_repeat_forever, 'repeat: the number of times', status)) return
        status = c_repeat(self%handle, count, made)
        call self%replace(made, status)
    end subroutine

    subroutine dataset_take(self, count, status)
        class(dataset), intent(inout) :: self
        integer(c_int64_t), intent(in) :: count
        integer, intent(out) :: status
        type(c_ptr) :: made
        if (is_below(count, 0_c_int64_t, 'take: the number of rows', status)) return
        status = c_take(self%handle, count, made)
        call self%replace(made, status)
    end subroutine

    subroutine dataset_skip(self, count, status)
        class(dataset), intent(inout) :: self
        integer(c_int64_t), intent(in) :: count
        integer, intent(out) :: status
        type(c_ptr) :: made
        if (is_below(count, 0_c_int64_t, 'skip: the number of rows', status)) return
        status = c_skip(self%handle, count, made)
        call self%replace(made, status)
    end subroutine

    ! Every num_shards-th row, from row `index` on, counted from 1.
    subroutine dataset_shard(self, num_shards, index, status)
        class(dataset), intent(inout) :: self
        integer(c_int64_t), intent(in) :: num_shards, index
        integer, intent(out) :: status
        type(c_ptr) :: made
        if (is_below(num_shards, 1_c_int64_t, 'shard: the number of shards', status)) return
        if (is_below(index, 1_c_int64_t, 'shard: the index', status)) return
        status = c_shard(self%handle, num_shards, index - 1, made)
        call self%replace(made, status)
    end subroutine

    ! Global batches of `rows` rows, over all replicas.
    subroutine dataset_batch(self, rows, status, drop_remainder)
        class(dataset), intent(inout) :: self
        integer, intent(in) :: rows
        integer, intent(out) :: status
        logical, intent(in), optional :: drop_remainder
        integer(c_int32_t) :: flags
        type(c_ptr) :: made
        if (is_below(int(rows, c_int64_t), 1_c_int64_t, 'batch: the number of rows', status)) return
        flags = 0
        if (present(drop_remainder)) flags = merge(ditto_batch_drop_remainder, 0_c_int32_t, drop_remainder)
        status = c_batch(self%handle, int(rows, c_int64_t), flags, made)
        call self%replace(made, status)
    end subroutine

    subroutine dataset_unbatch(self, status)
        class(dataset), intent(inout) :: self
        integer, intent(out) :: status
        type(c_ptr) :: made
        status = c_unbatch(self%handle, made)
        call self%replace(made, status)
    end subroutine

    subroutine dataset_prefetch(self, num_batches, status)
        class(dataset), intent(inout) :: self
        integer, intent(in) :: num_batches
        integer, intent(out) :: status
        type(c_ptr) :: made
        if (is_below(int(num_batches, c_int64_t), 1_c_int64_t, 'prefetch: the number of batches', &
                     status)) return
        status = c_prefetch(self%handle, int(num_batches, c_int64_t), made)
        call self%replace(made, status)
    end subroutine

    ! What was made from the dataset stays.
    subroutine dataset_destroy(self, status)
        class(dataset), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine

    ! -- iterators --

    ! Starts a pass over a dataset, outside of runs.
    subroutine iterator_create(self, s, rows, status, options)
        class(iterator), intent(inout) :: self
        type(strategy), intent(in) :: s
        type(dataset), intent(in) :: rows
        integer, intent(out) :: status
        type(input_options), intent(in), optional :: options
        type(input_options) :: given
        if (exists(self%handle, 'create: the iterator', status)) return
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        if (is_below(given%global_batch, 0_c_int64_t, 'create: global_batch', status)) return
        if (is_below(given%pass, 0_c_int64_t, 'create: pass', status)) return
        if (is_below(given%max_bytes, 0_c_int64_t, 'create: max_bytes', status)) return
        status = c_iterate(s%handle, rows%handle, given, self%handle)
    end subroutine

    ! Takes the replica's next batch, in a run. The status is ditto_end_of_input when all have been taken.
    subroutine iterator_next(self, of, b, status)
        class(iterator), intent(in) :: self
        class(replica), intent(inout) :: of
        type(batch), intent(inout) :: b
        integer, intent(out) :: status
        if (ready(of%status, status)) call of%keep(c_next(of%handle, self%handle, b), status)
    end subroutine

    ! Saves the position. An iterator whose options have the state continues there:
    !     options%state = c_loc(state)
    !     options%state_bytes = size(state)
    subroutine iterator_save(self, state, status)
        class(iterator), intent(in) :: self
        integer(c_int8_t), allocatable, intent(out) :: state(:)
        integer, intent(out) :: status
        type(c_ptr) :: memory
        integer(c_size_t) :: bytes
        integer(c_int8_t), pointer :: found(:)
        status = c_save(self%handle, memory, bytes)
        if (status < 0) return
        call c_f_pointer(memory, found, [bytes])
        state = found
        call c_state_free(memory)
    end subroutine

    subroutine iterator_destroy(self, status)
        class(iterator), intent(inout) :: self
        integer, intent(out) :: status
        status = c_iterator_destroy(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine
end module
