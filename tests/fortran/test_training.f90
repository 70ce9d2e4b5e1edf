! tests/fortran/test_training.f90 - the Fortran modules of datasets, optimizers and checkpoints: what they
! return, what they refuse, and their C structs.
!     test_training FOLDER     an empty folder for files
module training_cases
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    use ditto
    use ditto_input
    use ditto_optimizers
    use ditto_checkpoints
    implicit none
    integer :: failures = 0
    integer, parameter :: counts(4) = [1, 2, 3, 8]
    character(200) :: folder
    real(real64) :: result_of_add_first(2) = 0

    ! What a run gives to each replica.
    type :: job
        integer :: kind = 0
        type(iterator) :: steps
        type(optimizer) :: o
        type(variable) :: w, b
    end type

    ! What maps and filters get.
    type :: numbers
        integer(int64) :: divisor = 2
    end type

    interface
        subroutine c_sizes_of_more(bytes) bind(c)
            import :: c_size_t
            integer(c_size_t), intent(out) :: bytes(*)
        end subroutine
        function c_input_options_are(o) bind(c) result(same)
            import
            type(input_options), intent(in) :: o
            integer(c_int) :: same
        end function
        function c_optimizer_options_are(o) bind(c) result(same)
            import
            type(optimizer_options), intent(in) :: o
            integer(c_int) :: same
        end function
        function c_csv_is(component, options) bind(c) result(same)
            import
            type(csv_component), intent(in) :: component
            type(csv_options), intent(in) :: options
            integer(c_int) :: same
        end function
        subroutine c_fill_batch(b) bind(c)
            import
            type(batch), intent(out) :: b
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

    ! -- structs --

    subroutine structs_are_those_of_c()
        integer(c_size_t) :: bytes(20)
        type(input_options) :: i
        type(optimizer_options) :: o
        type(csv_component) :: c
        type(csv_options) :: v
        type(batch) :: b
        integer(c_int8_t), target :: somewhere
        call c_sizes_of_more(bytes)
        call check(all(bytes == [input_sizes(), optimizer_sizes(), checkpoint_sizes()]), 'sizes')
        ! Each component has a value of its own.
        i = input_options(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, c_loc(somewhere), 12)
        call check(c_input_options_are(i) == 1, 'input_options')
        o = optimizer_options(1, c_loc(somewhere), 2, 3, 4d0, 5, 6d0, 7, 8d0, 9, 10d0, 11, 12d0, 13, 14d0, &
                              15d0, c_null_funptr, c_loc(somewhere), 16, c_loc(somewhere), c_null_ptr, &
                              17, 18_c_int64_t, 19)
        call check(c_optimizer_options_are(o) == 1, 'optimizer_options')
        c = csv_component(1, 2, 3, 4, 5, 6d0)
        v = csv_options(1, 2, 3, ';', 4, 5)
        call check(c_csv_is(c, v) == 1, 'csv_component and csv_options')
        call c_fill_batch(b)
        call check(b%rows == 1 .and. b%step == 2 .and. b%num_components == 3 .and. b%component(16)%rank == 4 &
                   .and. b%component(1)%dtype == ditto_f64 .and. all(extents(b%component(1)) == [6, 5]) &
                   .and. b%component(1)%device == 7, 'batch')
    end subroutine

    ! -- datasets --

    ! Halves even numbers. The others must not come.
    subroutine halve(row, new, user, status)
        type(tensor), intent(in) :: row(:), new(:)
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        integer(int64), pointer :: from
        real(real64), pointer :: to
        call c_f_pointer(row(1)%data, from)
        call c_f_pointer(new(1)%data, to)
        select type (user)
        type is (numbers)
            if (mod(from, user%divisor) /= 0) status = failure('an odd number')
            to = real(from, real64)/real(user%divisor, real64)
        end select
    end subroutine

    subroutine ones(row, new, user, status)
        type(tensor), intent(in) :: row(:), new(:)
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        integer(int64), pointer :: to
        select type (user)
        type is (integer)
            if (size(row) /= 1) status = failure('another row')
        end select
        call c_f_pointer(new(1)%data, to)
        to = 1
    end subroutine

    subroutine keep_even(row, keep, user, status)
        type(tensor), intent(in) :: row(:)
        logical, intent(inout) :: keep
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        integer(int64), pointer :: from
        if (status /= 0) return
        call c_f_pointer(row(1)%data, from)
        select type (user)
        type is (numbers)
            keep = mod(from, user%divisor) == 0
        end select
    end subroutine

    ! Adds up the first components of all rows of a dataset, and counts them.
    subroutine sum_of(rows, total, count, status)
        type(dataset), intent(in) :: rows
        real(real64), intent(out) :: total
        integer, intent(out) :: count, status
        type(strategy) :: s
        type(dataset) :: batches
        type(job) :: j
        real(real64) :: sums(2)
        integer :: ended
        total = 0
        count = 0
        call s%create(2, status)
        call batches%from_dataset(rows, status)
        if (status == 0) call batches%batch(3, status)
        if (status == 0) call j%steps%create(s, batches, status)
        if (status == 0) call s%run(add_first, j, status)
        sums = result_of_add_first
        total = sums(1)
        count = nint(sums(2))
        if (c_associated(j%steps%handle)) call j%steps%destroy(ended)
        call batches%destroy(ended)
        call s%destroy(ended)
    end subroutine

    subroutine dataset_functions()
        type(dataset) :: rows, even, halves, more, both
        type(map_function), target :: of_map
        type(filter_function), target :: of_filter
        type(map_function), target, save :: without_user
        type(numbers), target :: two
        real(real64) :: total
        integer :: count, status
        without_user%function => ones
        of_map%function => halve
        of_map%user => two
        of_filter%function => keep_even
        of_filter%user => two
        call rows%from_range(0_int64, 10_int64, status)
        call check(status == 0, 'from_range')
        call sum_of(rows, total, count, status)
        call check(status == 0 .and. total == 45 .and. count == 10, 'all rows')
        call even%from_dataset(rows, status)
        call even%filter(of_filter, status)
        call check(status == 0, 'filter')
        call sum_of(even, total, count, status)
        call check(status == 0 .and. total == 20 .and. count == 5, 'even rows')
        call even%map(of_map, status, [tensor_component(ditto_f64)])
        call sum_of(even, total, count, status)
        call check(status == 0 .and. total == 10 .and. count == 5, 'halves')
        call even%shuffle(status, seed=5_int64)
        call even%take(2_int64, status)
        call even%repeat(3_int64, status)
        call even%skip(1_int64, status)
        call sum_of(even, total, count, status)
        call check(status == 0 .and. count == 5, 'two of them, three times')
        call halves%from_dataset(rows, status)
        call halves%map(of_map, status, [tensor_component(ditto_f64)])
        call sum_of(halves, total, count, status)
        call refused(status, 'an odd number')
        call more%from_range(100_int64, 105_int64, status)
        call both%from_all('concatenate', [rows, more], status)
        call sum_of(both, total, count, status)
        call check(status == 0 .and. total == 45 + 510 .and. count == 15, 'concatenate')
        call both%destroy(status)
        call both%from_all('interleave', [rows, more], status)
        call sum_of(both, total, count, status)
        call check(status == 0 .and. count == 15, 'interleave')
        call both%destroy(status)
        call both%from_all('zip', [rows, more], status)
        call sum_of(both, total, count, status)
        call check(status == 0 .and. total == 10 .and. count == 5, 'zip')
        call both%shard(2_int64, 2_int64, status)
        call sum_of(both, total, count, status)
        call check(status == 0 .and. total == 4 .and. count == 2, 'shard')
        call both%prefetch(3, status)
        call check(status == 0, 'prefetch')
        ! Refused.
        call both%from_range(0_int64, 1_int64, status)
        call refused(status, 'destroy it first')
        call rows%take(-1_int64, status)
        call refused(status, 'take: the number of rows is -1')
        call rows%skip(-1_int64, status)
        call refused(status, 'skip: the number of rows is -1')
        call rows%repeat(-2_int64, status)
        call refused(status, 'repeat: the number of times is -2')
        call rows%shard(2_int64, 0_int64, status)
        call refused(status, 'shard: the index is 0')
        call rows%batch(0, status)
        call refused(status, 'batch: the number of rows is 0')
        call rows%shuffle(status, buffer_rows=-1_int64)
        call refused(status, 'shuffle: buffer_rows is -1')
        call both%map(of_map, status)
        call refused(status, 'other components')
        call halves%destroy(status)
        call halves%from_range(0_int64, 4_int64, status)
        call halves%map(without_user, status)
        call sum_of(halves, total, count, status)
        call check(status == 0 .and. total == 4, 'a map without data')
        call both%filter(of_filter, status)
        call refused(status, 'other components')
        call rows%prefetch(0, status)
        call refused(status, 'prefetch: the number of batches is 0')
        call rows%unbatch(status)
        call refused(status, 'not batched')
        of_map%function => null()
        call rows%map(of_map, status)
        call refused(status, 'has no function')
        call halves%destroy(status)
        call halves%from_all('mix', [rows, more], status)
        call refused(status, '"mix"')
        call sum_of(rows, total, count, status)
        call check(status == 0 .and. count == 10, 'the dataset after refused calls')
        call halves%take(1_int64, status)
        call refused(status, 'input is NULL')
        call rows%destroy(status)
        call more%destroy(status)
        call both%destroy(status)
        call even%destroy(status)
        call check(status == 0, 'destroy')
    end subroutine

    subroutine write_file(name, text)
        character(*), intent(in) :: name, text
        integer :: unit
        open (newunit=unit, file=trim(folder)//'/'//name, access='stream', form='unformatted', &
              status='replace')
        write (unit) text
        close (unit)
    end subroutine

    subroutine files()
        type(dataset) :: rows
        real(real64) :: total
        integer :: count, status
        call write_file('rows.csv', '1,2,cat'//new_line('a')//'3,4,dog'//new_line('a')//'5,6,emu')
        call rows%from_csv(trim(folder)//'/rows.csv', [csv_columns(2, 1, ditto_f64), csv_text(3, 8)], status)
        call sum_of(rows, total, count, status)
        call check(status == 0 .and. total == 12 .and. count == 3, 'from_csv')
        call rows%destroy(status)
        call rows%from_csv(trim(folder)//'/*.csv', [csv_columns(2, 2, ditto_f64)], status, glob=.true.)
        call check(status == 0, 'a pattern')
        call sum_of(rows, total, count, status)
        call refused(status, 'rows.csv')
        call rows%destroy(status)
        call rows%from_text(trim(folder)//'/rows.csv', status, max_bytes=16_int64, skip_lines=1_int64)
        call sum_of(rows, total, count, status)
        call check(status == 0 .and. count == 2, 'from_text')
        call rows%destroy(status)
        call write_file('rows.bin', transfer([1d0, 2d0, 3d0, 4d0], repeat(' ', 32)))
        call rows%from_fixed(trim(folder)//'/rows.bin', [tensor_component(ditto_f64, [2])], status)
        call sum_of(rows, total, count, status)
        call check(status == 0 .and. total == 4 .and. count == 2, 'from_fixed')
        call rows%destroy(status)
        call rows%from_text(trim(folder)//'/rows.csv', status, gzip=.true.)
        call refused(status, 'rows.csv')
        call rows%from_csv(trim(folder)//'/rows.csv', [csv_columns(1, 1, ditto_f64)], status, &
                           csv_options(num_columns=3, compression=ditto_compression_gzip))
        call refused(status, 'rows.csv')
        call rows%from_text(trim(folder)//'/rows.csv', status, skip_lines=-1_int64)
        call refused(status, 'from_text: skip_lines is -1')
        call rows%from_npy(['nowhere.npy'], status)
        call refused(status, 'nowhere.npy')
        call rows%from_tfrecord('nowhere', status)
        call refused(status, 'nowhere')
        call rows%from_fixed(trim(folder)//'/rows.bin', &
                             [tensor_component(ditto_f64, [1, 1, 1, 1, 1, 1, 1, 1, 1])], status)
        call check(status < 0, 'a component of nine dimensions')
    end subroutine

    ! -- in runs --

    subroutine add_first(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(batch) :: b
        real(real64) :: sums(2)
        integer :: status
        sums = 0
        select type (user)
        type is (job)
            do
                call user%steps%next(self, b, status)
                if (status /= ditto_ok) exit
                sums = sums + [first_of(b), real(b%rows, real64)]
            end do
            call self%all_reduce(sums, ditto_sum)
            if (self%id() == 0) result_of_add_first = sums
        end select
    end subroutine

    ! The sum of the first elements of the rows of a batch.
    function first_of(b) result(total)
        type(batch), intent(in) :: b
        real(real64) :: total
        integer(int64), pointer :: whole(:)
        real(real64), pointer :: values(:), matrix(:, :)
        total = 0
        associate (c => b%component(1))
            if (c%dtype == ditto_i64) then
                call c_f_pointer(c%data, whole, extents(c))
                total = real(sum(whole), real64)
            else if (c%dtype == ditto_f64 .and. c%rank == 1) then
                call c_f_pointer(c%data, values, extents(c))
                total = sum(values)
            else if (c%dtype == ditto_f64) then
                call c_f_pointer(c%data, matrix, extents(c))
                total = sum(matrix(1, :))
            end if
        end associate
    end function

    ! A step of an optimizer, whole and in parts.
    subroutine take_step(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real32), target, asynchronous :: of_w(3, 2), of_b(2)
        real(real64) :: norm
        of_w = 1
        of_b = 2
        select type (user)
        type is (job)
            select case (user%kind)
            case (1)
                call user%o%apply(self, [tensor_of(of_w), tensor_of(of_b)], norm=norm)
                if (self%status == 0) &
                    call check(abs(norm - self%num_replicas()*sqrt(14d0)) < 1e-4*norm, 'a norm')
            case (2)
                call user%o%start_apply(self, 2, [tensor_of(of_b)])
                call user%o%start_apply(self, 1, [tensor_of(of_w)])
                call user%o%finish_apply(self)
            case (3)
                call user%o%apply(self, [tensor_of(of_w)])
            case (4)
                call user%o%apply(self, [tensor_of(of_w(1:3:2, :)), tensor_of(of_b)])
            case (5)
                call user%o%apply(self, [tensor_of(of_b), tensor_of(of_w)])
            case (6)
                call user%o%apply(self, [tensor_of(of_w), tensor_of(of_b)], learning_rate=-1d0)
            case (7)
                call user%o%start_apply(self, 3, [tensor_of(of_b)])
            end select
        end select
    end subroutine

    subroutine optimizers(n)
        integer, intent(in) :: n
        type(strategy) :: s
        type(job) :: j
        type(optimizer_options) :: options
        type(optimizer) :: none
        type(variable) :: momentum
        real(real32) :: w(3, 2), b(2)
        integer(int64) :: steps
        integer :: status
        call s%create(n, status)
        w = 1
        b = 1
        call s%create_variable(w, j%w, status)
        call s%create_variable(b, j%b, status)
        options%rule = ditto_rule_sgd
        options%learning_rate = 0.5d0
        options%momentum = 0.5d0
        call j%o%create([j%w, j%b], options, status)
        call check(status == 0 .and. j%o%num_variables() == 2, 'create')
        j%kind = 1
        call s%run(take_step, j, status)
        call check(status == 0, 'apply')
        call j%w%read(w, status)
        call j%b%read(b, status)
        call check(all(w == 1 - 0.5*n) .and. all(b == 1 - n), 'values after a step')
        call j%o%slot(2, 'momentum', momentum, status)
        call check(status == 0, 'slot')
        call momentum%read(b, status)
        call check(status == 0 .and. all(b == -n), 'a slot')
        j%kind = 2
        call s%run(take_step, j, status)
        call check(status == 0, 'a step in parts')
        call j%o%iterations(steps, status)
        call check(status == 0 .and. steps == 2, 'iterations')
        j%kind = 3
        call s%run(take_step, j, status)
        call refused(status, 'apply: 1 gradients for 2 variables')
        j%kind = 4
        call s%run(take_step, j, status)
        call refused(status, 'the array is not contiguous')
        j%kind = 5
        call s%run(take_step, j, status)
        call refused(status, 'gradient')
        j%kind = 6
        call s%run(take_step, j, status)
        call refused(status, 'learning_rate = -1')
        j%kind = 7
        call s%run(take_step, j, status)
        call refused(status, 'variable')
        call none%create([j%w, j%w], options, status)
        call refused(status, 'listed twice')
        call j%o%create([j%w], options, status)
        call refused(status, 'destroy it first')
        call j%w%destroy(status)
        call refused(status, 'optimizer')
        call j%o%destroy(status)
        call check(status == 0, 'destroy')
        j%kind = 1
        call s%run(take_step, j, status)
        call refused(status, 'create it first')
        call j%w%destroy(status)
        call j%b%destroy(status)
        call s%destroy(status)
        call check(status == 0, 'destroy of the strategy')
    end subroutine

    ! -- batches --

    subroutine batches(n)
        integer, intent(in) :: n
        real(real64), target :: images(3, 20)
        integer(int32), target :: labels(20)
        type(strategy) :: s
        type(dataset) :: rows
        type(job) :: j
        type(input_options) :: options
        integer(int8), allocatable, target :: state(:)
        integer :: i, status
        images = reshape([(real(i, real64), i=1, 60)], [3, 20])
        labels = [(i, i=1, 20)]
        call s%create(n, status)
        call rows%from_arrays([tensor_of(images), tensor_of(labels)], status)
        call check(status == 0, 'from_arrays')
        call rows%batch(8, status)
        call j%steps%create(s, rows, status)
        call check(status == 0, 'an iterator')
        call s%run(add_first, j, status)
        call check(status == 0 .and. result_of_add_first(1) == sum(images(1, :)) &
                   .and. result_of_add_first(2) == 20, 'batches')
        call j%steps%create(s, rows, status)
        call refused(status, 'destroy it first')
        call j%steps%destroy(status)
        ! A state, and an iterator that continues there.
        options%pass = 2
        call j%steps%create(s, rows, status, options)
        call s%run(take_one, j, status)
        call j%steps%save(state, status)
        call check(status == 0 .and. size(state) > 0, 'save')
        call j%steps%destroy(status)
        options%state = c_loc(state)
        options%state_bytes = size(state, kind=c_size_t)
        call j%steps%create(s, rows, status, options)
        call check(status == 0, 'an iterator from a state')
        call s%run(add_first, j, status)
        call check(status == 0 .and. result_of_add_first(2) == 12, 'the rest of the rows')
        call j%steps%destroy(status)
        call rows%destroy(status)
        call rows%from_arrays([tensor_of(images(1:3:2, :))], status)
        call refused(status, 'the array is not contiguous')
        call rows%from_arrays([tensor_of(images), tensor_of(labels(1:3))], status)
        call refused(status, 'arrays[1] has 3 rows')
        call s%destroy(status)
        call check(status == 0, 'destroy')
    end subroutine

    subroutine take_one(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(batch) :: b
        real(real64), allocatable :: images(:, :)
        integer :: status
        select type (user)
        type is (job)
            call user%steps%next(self, b, status)
            allocate (images(3, b%rows))
            call elements_of(b%component(1), images, status)
            call check(status == 0 .and. all(images(2, :) == images(1, :) + 1), 'elements_of')
            if (b%rows > 0) then
                call elements_of(b%component(2), images, status)
                call check(status < 0, 'elements of another type')
            end if
        end select
    end subroutine

    ! -- checkpoints --

    subroutine checkpoints(n)
        integer, intent(in) :: n
        type(strategy) :: s, other
        type(variable) :: w, restored_w, v
        type(checkpoint) :: file
        type(checkpointer) :: saves
        real(real32) :: values(4)
        real(real64), target :: field(3, 2), found(3, 2)
        character(:), allocatable :: path, place
        integer(int64) :: step
        integer :: status, restored
        place = trim(folder)//'/saves'
        field = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [3, 2])
        call s%create(n, status)
        values = [1, 2, 3, 4]
        call s%create_variable(values, w, status, name='w')
        call latest_checkpoint(s, trim(folder)//'/none', path, step, status)
        call check(status == ditto_err_not_found, 'no checkpoint')
        call save_checkpoint(s, trim(folder)//'/one.h5', status, step=7_int64, &
                             arrays=[named_array('field', tensor_of(field))])
        call check(status == 0, 'save')
        call saves%create(s, place, status, prefix='run', keep=2, background=.true.)
        call check(status == 0, 'a checkpointer')
        call saves%save(10_int64, status)
        call saves%save(20_int64, status, [named_array('field', tensor_of(field))])
        call saves%save(30_int64, status)
        call saves%wait(status)
        call check(status == 0, 'saves')
        call saves%create(s, place, status)
        call refused(status, 'destroy it first')
        call saves%destroy(status)
        call check(status == 0, 'destroy of a checkpointer')
        call saves%create(s, place, status, keep=0)
        call refused(status, 'keep is below 1')
        call latest_checkpoint(s, place, path, step, status, prefix='run')
        call check(status == 0 .and. step == 30 .and. index(path, 'run-30.h5') /= 0, 'the latest')
        call save_checkpoint(s, trim(folder)//'/two.h5', status, &
                             arrays=[named_array(repeat('x', 300), tensor_of(field))])
        call refused(status, 'may be cut')
        call save_checkpoint(s, '/nowhere/file.h5', status)
        call refused(status, '/nowhere')
        call save_checkpoint(s, trim(folder)//'/two.h5', status, &
                             arrays=[named_array('field', tensor_of(field(1:3:2, :)))])
        call refused(status, 'the array is not contiguous')
        ! Another number of replicas.
        call other%create(n + 1, status)
        values = 0
        call other%create_variable(values, restored_w, status, name='w')
        call restore_checkpoint(other, trim(folder)//'/one.h5', status, num_restored=restored)
        call check(status == 0 .and. restored == 1, 'restore')
        call restored_w%read(values, status)
        call check(all(values == [1, 2, 3, 4]), 'restored values')
        call file%open(trim(folder)//'/one.h5', status)
        call check(status == 0 .and. file%step() == 7, 'open')
        call file%read('field', found, status)
        call check(status == 0 .and. all(found == field), 'an array of the program')
        call file%read('field', values, status)
        call refused(status, 'another type')
        call file%read('chair', found, status)
        call refused(status, 'chair')
        call file%open(trim(folder)//'/one.h5', status)
        call refused(status, 'close it first')
        call file%close(status)
        call check(status == 0, 'close')
        call file%open(trim(folder)//'/nowhere.h5', status)
        call refused(status, 'nowhere.h5')
        call other%create_variable(values, v, status, name='v')
        call restore_checkpoint(other, trim(folder)//'/one.h5', status)
        call refused(status, '"v"')
        call restore_checkpoint(other, trim(folder)//'/one.h5', status, partial=.true.)
        call check(status == 0, 'a partial restore')
        call w%destroy(status)
        call restored_w%destroy(status)
        call v%destroy(status)
        call other%destroy(status)
        call s%destroy(status)
        call check(status == 0, 'destroy')
    end subroutine
end module

program test_training
    use training_cases
    implicit none
    integer :: i
    call get_command_argument(1, folder)
    call structs_are_those_of_c()
    call dataset_functions()
    call files()
    do i = 1, size(counts)
        call batches(counts(i))
        call optimizers(counts(i))
        call checkpoints(counts(i))
    end do
    print '(i0, a)', failures, ' failures'
    if (failures /= 0) stop 1
end program
