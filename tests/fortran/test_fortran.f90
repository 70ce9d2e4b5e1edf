! tests/fortran/test_fortran.f90 - the Fortran module: what it returns, what it refuses, and its C structs.
module cases
    use, intrinsic :: iso_c_binding
    use, intrinsic :: iso_fortran_env
    use ditto
    implicit none
    integer :: failures = 0
    real(real64), asynchronous :: left(1000, 0:15) = 1

    ! What a run gives to each replica.
    type :: job
        integer :: kind = 0
        type(variable) :: v
        type(grouping) :: groups(2)
    end type

    interface
        subroutine c_sizes_of(bytes) bind(c)
            import :: c_size_t
            integer(c_size_t), intent(out) :: bytes(*)
        end subroutine
        subroutine c_offsets(offsets) bind(c)
            import :: c_size_t
            integer(c_size_t), intent(out) :: offsets(*)
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

    ! -- structs --

    function at(base, member) result(bytes)
        type(c_ptr), intent(in) :: base, member
        integer(c_size_t) :: bytes
        integer(c_intptr_t) :: zero
        bytes = transfer(member, zero) - transfer(base, zero)
    end function

    function fp(p) result(c)
        type(c_funptr), intent(in), target :: p
        type(c_ptr) :: c
        c = c_loc(p)
    end function

    subroutine structs_are_those_of_c()
        integer(c_size_t) :: bytes(5), offsets(47), own(47)
        type(strategy_options), target :: o
        type(exchange_part), target :: p
        type(pending), target :: q
        type(replica_group), target :: g
        type(c_ptr) :: b
        call c_sizes_of(bytes)
        call check(all(bytes == c_sizes()), 'sizes')
        call c_offsets(offsets)
        b = c_loc(o)
        own(1:16) = [at(b, c_loc(o%num_replicas)), at(b, c_loc(o%span)), at(b, c_loc(o%placement_options)), &
                     at(b, c_loc(o%placement)), at(b, c_loc(o%caller)), at(b, c_loc(o%pin)), &
                     at(b, c_loc(o%helpers)), at(b, c_loc(o%stack_bytes)), at(b, fp(o%thread_start)), &
                     at(b, fp(o%thread_stop)), at(b, c_loc(o%thread_user)), at(b, c_loc(o%memory)), &
                     at(b, c_loc(o%parameter_node)), at(b, c_loc(o%has_parameter_node)), &
                     at(b, c_loc(o%timeout_ms)), at(b, c_loc(o%run_timeout_ms))]
        own(17:33) = [at(b, c_loc(o%spin_us)), at(b, c_loc(o%has_spin_us)), at(b, c_loc(o%implementation)), &
                      at(b, c_loc(o%bytes_per_pack)), at(b, c_loc(o%kernels)), at(b, c_loc(o%tuning)), &
                      at(b, c_loc(o%floating)), at(b, c_loc(o%wait)), at(b, c_loc(o%order_blocks)), &
                      at(b, c_loc(o%part)), at(b, c_loc(o%cluster)), at(b, c_loc(o%run_agreement)), &
                      at(b, c_loc(o%replicas_per_worker)), at(b, c_loc(o%parameter_nodes)), &
                      at(b, c_loc(o%num_parameter_nodes)), at(b, c_loc(o%fastest_kinds)), &
                      at(b, c_loc(o%pus_per_replica))]
        b = c_loc(p)
        own(34:39) = [at(b, c_loc(p%tag)), at(b, c_loc(p%src)), at(b, c_loc(p%dst)), &
                      at(b, c_loc(p%src_count)), at(b, c_loc(p%dst_count)), at(b, c_loc(p%dtype))]
        b = c_loc(q)
        own(40:41) = [at(b, c_loc(q%replica)), at(b, c_loc(q%run))]
        b = c_loc(g)
        own(42:47) = [at(b, c_loc(g%rank)), at(b, c_loc(g%size)), at(b, c_loc(g%replicas)), &
                      at(b, c_loc(g%grouping)), at(b, c_loc(g%slot)), at(b, c_loc(g%run))]
        call check(all(own == offsets), 'offsets')
    end subroutine

    ! -- collectives --

    subroutine move_other_types(self)
        class(replica), intent(inout) :: self
        character(len=7) :: word, words(2)
        character(len=3) :: own(1)
        character(len=3), allocatable :: names(:)
        logical :: answers(3)
        logical, allocatable :: all_answers(:, :)
        type(exchange_part) :: part(1)
        integer :: n, id
        n = self%num_replicas()
        id = self%id()
        allocate (names(n), all_answers(3, n))
        word = merge('replica', 'nothing', id == n - 1)
        call self%broadcast_text(word(3:5), n - 1)
        call check(word == merge('replica', 'nopling', id == n - 1), 'a part of a text')
        call self%broadcast_text(word(1:0), n - 1)
        words = merge('replica', 'nothing', id == 0)
        call self%broadcast(words(2:2), 0)
        call check(words(2) == 'replica' .and. (words(1) == 'nothing' .neqv. id == 0), 'texts')
        answers = [.true., id == 0, .false.]
        call self%all_gather(answers, all_answers)
        call check(all(all_answers(1, :)) .and. count(all_answers(2, :)) == 1 .and. all_answers(2, 1) .and. &
                   .not. any(all_answers(3, :)), 'logicals')
        own = achar(97 + id)//'bc'
        call self%all_gather(own, names)
        call check(names(n) == achar(96 + n)//'bc' .and. names(1) == 'abc', 'gathered texts')
        answers = .not. answers
        call self%part(id, 1, answers(1:2), all_answers(2:3, 1), part(1))
        call self%exchange(part)
        call check(.not. all_answers(2, 1) .and. (all_answers(3, 1) .neqv. id == 0), 'exchanged logicals')
    end subroutine

    subroutine collectives(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        integer :: n, id, k, status
        real(real64) :: scalar, total
        real(real32) :: matrix(3, 4)
        integer(int64) :: wide(5)
        integer(int8) :: narrow(2)
        complex(real64) :: z(3)
        logical(c_bool) :: flags(2)
        real(real64), allocatable :: all(:), own(:), places(:)
        n = self%num_replicas()
        id = self%id()
        total = n*(n + 1)/2
        scalar = id + 1
        call self%all_reduce(scalar, ditto_sum)
        call check(scalar == total, 'a scalar')
        matrix = real(id + 1)
        call self%all_reduce(matrix, ditto_mean, status)
        call check(status == 0 .and. abs(matrix(3, 4) - real(total/n)) < 1e-6, 'a matrix')
        call self%all_reduce(matrix(:, 2:3), ditto_max)
        wide = [(int(k, int64)*id, k=1, 5)]
        call self%all_reduce(wide, ditto_max)
        call check(wide(5) == 5*(n - 1), 'integers')
        narrow = int(id, int8)
        call self%broadcast(narrow, n - 1)
        call check(narrow(1) == n - 1, 'a broadcast')
        call move_other_types(self)
        z = cmplx(1, id, real64)
        call self%all_reduce(z, ditto_sum)
        call check(z(2) == cmplx(n, total - n, real64), 'complex numbers')
        flags(1) = logical(id == 0, c_bool)
        flags(2) = .true._c_bool
        call self%all_reduce(flags, ditto_and)
        call check((flags(1) .eqv. n == 1) .and. flags(2), 'flags')
        allocate (own(2), all(2*n))
        own = id
        call self%all_gather(own, all)
        call check(all(2*n) == n - 1 .and. all(1) == 0, 'an all-gather')
        all = 1
        call self%reduce_scatter(all, own, ditto_sum)
        call check(own(2) == n, 'a reduce-scatter')
        call move_parts(self)
        own = 1
        allocate (places(2))
        places = -1
        call self%scan_exclusive(own, places, ditto_sum)
        call check(places(2) == merge(-1, id, id == 0), 'an exclusive scan')
        call self%scan(own, places, ditto_sum)
        call check(places(2) == id + 1, 'a scan')
        own = 2
        call self%reduce(own, 0, ditto_sum)
        call check(id /= 0 .or. own(1) == 2*n, 'a reduction')
        call self%block_dot([1d0, 2d0], [3d0, 4d0], scalar)
        call check(scalar == 11*n, 'a dot product')
        call self%block_sum([1d0, 2d0, 3d0], scalar)
        call check(scalar == 6*n, 'a block sum')
        call self%block_sum_with(1000_c_size_t, counted, id, scalar)
        call check(scalar == 500500d0*n, 'a block sum of computed elements')
        call self%block_sum_with(3_c_size_t, counted, id, matrix(1, 1))
        call check(matrix(1, 1) == 6*n, 'a block sum of computed f32')
        own = 1
        call self%all_reduce_through(own, ditto_sum, doubled, id)
        call check(all_equal(own, 2d0*n), 'an all-reduce through a procedure')
        call self%all_reduce_to(all, all, ditto_sum)
        call check(all(1) == n, 'the same array twice')
        call self%all_reduce(all(1:0), ditto_sum)
        call self%all_reduce([real(real64) ::], ditto_sum)
        call self%all_reduce(matrix(2:2, 3:3), ditto_sum)
        call self%all_reduce(matrix(1:0, :), ditto_sum)
        call self%barrier()
        call check(self%status == 0, 'no error')
    end subroutine

    function all_equal(x, value) result(is)
        real(real64), intent(in) :: x(:), value
        logical :: is
        is = all(x == value)
    end function

    ! Element i is i.
    subroutine counted(elements, first, user, status)
        type(tensor), intent(in) :: elements
        integer(c_size_t), intent(in) :: first
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        real(real64), pointer :: wide(:)
        real(real32), pointer :: narrow(:)
        integer :: i
        select type (user)
        type is (integer)
            if (user < 0 .and. first > 1) status = failure('too many elements')
        end select
        if (elements%dtype == ditto_f64) then
            call c_f_pointer(elements%data, wide, extents(elements))
            wide = [(real(first + i - 1, real64), i=1, size(wide))]
        else
            call c_f_pointer(elements%data, narrow, extents(elements))
            narrow = [(real(first + i - 1, real32), i=1, size(narrow))]
        end if
    end subroutine

    subroutine doubled(combined, user, status)
        type(tensor), intent(in) :: combined
        class(*), intent(inout) :: user
        integer(c_int), intent(inout) :: status
        real(real64), pointer :: x(:)
        select type (user)
        type is (integer)
            if (user < 0) status = failure('cannot double')
        end select
        call c_f_pointer(combined%data, x, extents(combined))
        x = 2*x
    end subroutine

    ! Replica k gets k + 1 elements of each other one.
    subroutine move_parts(self)
        class(replica), intent(inout) :: self
        integer :: n, id, k, status
        integer(c_size_t), allocatable :: gives(:), takes(:)
        integer, allocatable :: src(:), dst(:), own(:)
        n = self%num_replicas()
        id = self%id()
        allocate (gives(n), takes(n))
        src = [(1000*id + k, k=1, 2*n)]
        dst = src
        call self%all_to_all(src, dst)
        call check(dst(1) == 2*id + 1 .and. dst(2*n) == 1000*(n - 1) + 2*id + 2, 'an all-to-all')
        call self%all_to_all(dst, dst)
        call check(all(dst == src), 'an all-to-all in place')
        gives = [(int(k, c_size_t), k=1, n)]
        takes = id + 1
        deallocate (src, dst)
        allocate (src(n*(n + 1)/2), dst(n*(id + 1)), own(id + 1))
        src = id
        call self%all_to_all(src, dst, src_counts=gives, dst_counts=takes)
        call check(dst(1) == 0 .and. dst(n*(id + 1)) == n - 1, 'an all-to-all of different parts')
        own = id
        call self%gather_to_root(own, src, n - 1, counts=gives)
        call check(id /= n - 1 .or. (src(1) == 0 .and. src(size(src)) == n - 1), 'a gather')
        own = -1
        call self%scatter_from_root(src, own, n - 1, counts=gives)
        call check(all(own == id), 'a scatter')
        deallocate (src, own)
        allocate (src(2*n), own(2))
        own = id
        call self%gather_to_root(own, src, 0)
        call check(id /= 0 .or. src(2*n) == n - 1, 'a gather of equal parts')
        own = -1
        call self%scatter_from_root(src, own, 0)
        call check(all(own == id), 'a scatter of equal parts')
        takes = 7
        call self%all_to_all(src, src, status, src_counts=takes, dst_counts=takes)
        call check(status /= 0, 'counts that do not belong to the array')
        self%status = 0
    end subroutine

    subroutine started(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64), asynchronous :: src(1000), dst(1000)
        real(real64), allocatable, asynchronous :: more(:), own(:)
        type(pending) :: first, second
        logical :: complete
        allocate (more(2*self%num_replicas()), own(2))
        src = 1
        more = self%id()
        call self%start_all_reduce(src(:0), dst(:0), ditto_sum, first)
        call self%wait(first)
        call self%start_all_reduce(src, dst, ditto_sum, first)
        call self%start_reduce_scatter(more, own, ditto_sum, second)
        complete = .false.
        do while (.not. complete)
            call self%test(second, complete)
        end do
        call self%wait(first)
        call check(dst(1000) == self%num_replicas(), 'a started all-reduce')
        call self%start_all_gather(own, more, first)
        call self%wait(first)
        call check(self%status == 0 .and. more(1) == own(1), 'a started all-gather')
        more = self%id()
        call self%start_all_to_all(more, more, first)
        call self%wait(first)
        call check(self%status == 0 .and. more(1) == 0, 'a started all-to-all')
    end subroutine

    ! Replicas with even numbers are one group, and those with odd numbers another one, with falling ranks.
    subroutine in_groups(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(replica_group) :: g, axis
        type(exchange_part) :: part(1)
        type(pending) :: operation
        integer, pointer :: ids(:)
        integer, asynchronous :: x, total
        integer, allocatable :: all_x(:), parts(:)
        integer(c_size_t), allocatable :: counts(:)
        integer :: n, k, first, status
        n = self%num_replicas()
        select type (user)
        type is (job)
            call self%group_of(user%groups(1), g)
            call self%group_of(user%groups(2), axis)
        end select
        first = mod(self%id(), 2)
        call check(g%size == (n + 1 - first)/2 .and. g%index == first .and. axis%size == n, 'sizes of groups')
        call c_f_pointer(g%replicas, ids, [g%size])
        call check(ids(g%rank + 1) == self%id() .and. ids(g%size) == first, 'ranks')
        allocate (all_x(g%size), parts(g%size), counts(g%size))
        x = g%rank + 1
        call self%all_reduce_to(x, total, ditto_sum, group=g)
        call check(total == g%size*(g%size + 1)/2, 'all_reduce in a group')
        call self%all_gather(x, all_x, group=g)
        call check(all(all_x == [(k, k=1, g%size)]), 'all_gather in a group')
        call self%all_to_all(all_x, parts, group=g)
        call check(all(parts == x), 'all_to_all in a group')
        call self%scan(x, total, ditto_sum, group=g)
        call check(total == x*(x + 1)/2, 'scan in a group')
        counts = 1
        parts = 0
        call self%gather_to_root(x, parts, g%size - 1, group=g, counts=counts)
        call check(all(parts == all_x .or. g%rank /= g%size - 1), 'gather_to_root in a group')
        call self%reduce_scatter(all_x, total, ditto_sum, group=g)
        call check(total == x*g%size, 'reduce_scatter in a group')
        call self%start_all_reduce(x, total, ditto_max, operation, group=g)
        call self%wait(operation)
        call check(total == g%size, 'a started operation of a group')
        k = mod(g%rank + 1, g%size)
        total = 0
        if (g%size <= 2) then
            call self%part(k, 1, x, total, part(1))
            call self%exchange(part, group=g)
            call check(total == k + 1, 'exchange in a group')
        end if
        call self%barrier(group=axis, status=status)
        call check(status == 0, 'barrier of an axis')
    end subroutine

    subroutine borders(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real32), asynchronous :: field(4, 0:5)
        type(exchange_part) :: parts(2)
        integer :: left, right
        left = modulo(self%id() - 1, self%num_replicas())
        right = modulo(self%id() + 1, self%num_replicas())
        field = real(self%id())
        call self%part(left, left, field(:, 1), field(:, 0), parts(1))
        call self%part(right, self%id(), field(:, 4), field(:, 5), parts(2))
        call self%exchange(parts)
        call check(self%status == 0 .and. field(1, 0) == left .and. field(4, 5) == right, 'borders')
    end subroutine

    subroutine own_memory(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(c_ptr) :: memory
        real(real64), pointer :: x(:, :)
        call self%alloc(8_c_size_t*100*50, memory)
        call c_f_pointer(memory, x, [100, 50])
        x = 1
        call self%all_reduce(x, ditto_sum)
        call check(x(100, 50) == self%num_replicas(), 'memory of the replica')
        call self%free(memory)
    end subroutine

    subroutine variables(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real32) :: x(2, 3), rows(2, 2)
        integer(int64) :: numbers(3) = [3_int64, 0_int64, 1_int64] ! every other one is used
        select type (user)
        type is (job)
            x = 1
            call self%assign_add(user%v, x)
            call self%read(user%v, x)
            call check(self%status == 0 .and. x(2, 1) == 2 + self%num_replicas(), 'a variable')
            call self%assign_sub(user%v, x(:, :))
            call self%assign(user%v, reshape(real([1, 2, 3, 4, 5, 6], real32), [2, 3]))
            call self%lookup(user%v, numbers(::2), rows)
            call check(all(rows == self%num_replicas()*reshape([5, 6, 1, 2], [2, 2])), 'rows')
            rows = 1
            call self%scatter(user%v, ditto_scatter_add, [2_int64], rows(:, 1:1))
            call self%scatter(user%v, ditto_scatter_add, [integer(int64) ::], rows(:, 1:0))
            call self%lookup(user%v, [integer(int64) ::], rows(:, 1:0))
            call self%lookup(user%v, [2_int64], rows(:, 2:2))
            call check(self%status == 0 .and. rows(1, 2) == 4*self%num_replicas(), 'added rows')
        end select
    end subroutine

    ! -- faults --

    subroutine wrong(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: x(4, 4)
        real(real32) :: y(4)
        character(8) :: text, texts(1)
        character(9) :: longer(1)
        type(exchange_part) :: part
        type(pending) :: operation
        real(real64), asynchronous :: a(1000), b(1000)
        integer :: status, minus
        minus = -1
        x = 1
        y = 1
        text = 'text'
        texts = text
        a = 1
        select type (user)
        type is (job)
            select case (user%kind)
            case (1)
                call self%all_reduce(x(2, :), ditto_sum)
            case (2)
                call self%all_reduce(text, ditto_max)
            case (3)
                call self%all_reduce_to(x(:, 1), y, ditto_sum)
            case (4)
                call self%all_reduce_to(x(:, 1), x(1:3, 2), ditto_sum)
            case (5)
                call legacy(self, x)
            case (6)
                call self%all_reduce(x, ditto_xor, status)
                call check(status < 0 .and. self%status == status, 'a status')
                call self%barrier(status)
                call check(status == self%status, 'a call after an error')
            case (7)
                if (self%id() == self%num_replicas() - 1) call self%fail('as it should', 5)
                call self%barrier()
            case (8)
                call self%start_all_reduce(a, b, ditto_sum, operation)
                if (self%id() == self%num_replicas() - 1) call self%fail('left behind')
                if (self%status == 0) call self%wait(operation)
            case (9) ! the arrays outlive the procedure
                call self%start_all_reduce(left(:, self%id()), left(:, self%id() + 8), ditto_sum, operation)
            case (10)
                call self%part(0, 0, x(1, :), x(:, 1), part)
            case (11)
                call self%assign(user%v, y)
            case (13)
                call self%block_sum_with(100000_c_size_t, counted, minus, x(1, 1))
            case (14)
                call self%all_reduce_through(a, ditto_sum, doubled, minus)
            case (15)
                call self%block_sum(a, y(1))
            case (32)
                call self%broadcast(text, 0)
            case (33)
                call self%part(self%id(), 1, texts, longer, part)
            case (12)
                call self%start_all_reduce(x(1:4:2, 1), x(1:2, 2), ditto_sum, operation)
            case (16:30, 34:39)
                call labelled(self, user%kind)
            case (31)
                call self%barrier(label=repeat('l', 64))
            end select
        end select
    end subroutine

    ! Each collective, with another label on the last replica. The blanks at the end of a label do not count.
    subroutine labelled(self, kind)
        class(replica), intent(inout) :: self
        integer, intent(in) :: kind
        real(real64), asynchronous :: x(2), y(16), z(16)
        integer :: one
        character(10) :: label
        type(pending) :: operation
        type(exchange_part) :: parts(0)
        label = 'loss'
        if (self%id() == self%num_replicas() - 1) label = 'accuracy'
        one = 1
        x = 1
        y = 1
        select case (kind)
        case (16)
            call self%barrier(label=label)
        case (17)
            call self%all_reduce(x, ditto_sum, label=label)
        case (18)
            call self%all_reduce_to(x, y(1:2), ditto_sum, label=label)
        case (19)
            call self%reduce(x, 0, ditto_sum, label=label)
        case (20)
            call self%broadcast(x, 0, label=label)
        case (21)
            call self%reduce_scatter(y(1:2*self%num_replicas()), x, ditto_sum, label=label)
        case (22)
            call self%all_gather(x, y(1:2*self%num_replicas()), label=label)
        case (23)
            call self%all_reduce_through(x, ditto_sum, doubled, one, label=label)
        case (24)
            call self%block_sum(x, y(1), label=label)
        case (25)
            call self%block_sum_with(2_c_size_t, counted, one, y(1), label=label)
        case (26)
            call self%block_dot(x, x, y(1), label=label)
        case (27)
            call self%exchange(parts, label=label)
        case (28)
            call self%start_all_reduce(x, y(1:2), ditto_sum, operation, label=label)
        case (29)
            call self%start_reduce_scatter(y(1:2*self%num_replicas()), x, ditto_sum, operation, label=label)
        case (30)
            call self%start_all_gather(x, z(1:2*self%num_replicas()), operation, label=label)
        case (34)
            call self%all_to_all(y(1:self%num_replicas()), z(1:self%num_replicas()), label=label)
        case (35)
            call self%gather_to_root(x, z(1:2*self%num_replicas()), 0, label=label)
        case (36)
            call self%scatter_from_root(z(1:2*self%num_replicas()), x, 0, label=label)
        case (37)
            call self%start_all_to_all(y(1:self%num_replicas()), z(1:self%num_replicas()), operation, &
                                       label=label)
        case (38)
            call self%scan(x, y(1:2), ditto_sum, label=label)
        case (39)
            call self%scan_exclusive(x, y(1:2), ditto_sum, label=label)
        end select
        label = 'replaced'
        if (self%status == 0 .and. any(kind == [28, 29, 30, 37])) call self%wait(operation)
    end subroutine

    ! An array whose size only the caller knows.
    subroutine legacy(self, x)
        class(replica), intent(inout) :: self
        real(real64), intent(inout) :: x(*)
        call self%all_reduce(x(1:4), ditto_sum)
        call self%all_reduce(x, ditto_sum)
    end subroutine

    subroutine faults(n)
        integer, intent(in) :: n
        character(60) :: expected(39)
        type(strategy) :: s
        type(job) :: j
        integer :: status, kind, ended
        real(real32) :: x(2, 3)
        expected(16:30) = '"accuracy" #1'
        expected(31) = 'has 64 bytes: the most is 63'
        expected(32:33) = [character(60) :: 'is one text', 'length of text']
        expected(34:39) = expected(30)
        expected(:15) = [character(60) :: 'the array is not contiguous', 'the array is of a type', &
                    'another type', 'has a size', 'of assumed size', 'XOR of f64', 'as it should', &
                    'left behind', &
                    'function returned with 1 pending operation', 'part: the source is not contiguous', &
                    'another type or size than the variable', 'the source is not contiguous', &
                    'too many elements', 'cannot double', 'the sum is of another type']
        call s%create(n, status)
        call check(status == 0, 'create')
        x = 2
        call s%create_variable(x, j%v, status, name='x', aggregation=ditto_aggregate_sum)
        call check(status == 0, 'create_variable')
        do kind = 1, size(expected)
            if (n == 1 .and. expected(kind) == expected(30)) cycle ! there is no other label
            j%kind = kind
            call s%run(wrong, j, status)
            call check(status < 0 .and. index(error_message(), trim(expected(kind))) /= 0, &
                       trim(expected(kind)))
            call s%run(collectives, j, status)
            call check(status == 0, 'a run after a fault')
        end do
        call s%destroy(ended)
        call check(ended == 0, 'destroy')
        ! After the end of the strategy.
        call j%v%read(x, status)
        call check(status < 0 .and. index(error_message(), 'destroyed') /= 0, &
                   'a variable without its strategy')
        call s%run(collectives, j, status)
        call check(status < 0, 'a run without a strategy')
        call j%v%destroy(status)
        call check(status == 0, 'destroy of a variable')
    end subroutine
end module

program test_fortran
    use cases
    implicit none
    integer, parameter :: counts(4) = [1, 2, 3, 8]
    type(strategy) :: s
    type(strategy_options) :: options
    type(job) :: j
    real(real32) :: x(2, 3)
    integer :: i, k, status
    call structs_are_those_of_c()
    do i = 1, size(counts)
        call s%create(counts(i), status)
        call check(status == 0 .and. s%num_replicas() == counts(i), 'create')
        call s%run(collectives, j, status)
        call check(status == 0, 'collectives')
        call s%run(started, j, status)
        call check(status == 0, 'started operations')
        if (counts(i) > 2) call s%run(borders, j, status)
        call check(status == 0, 'borders')
        call s%run(own_memory, j, status)
        call check(status == 0, 'memory')
        call s%split([(int(mod(k, 2), c_int32_t), k=0, counts(i) - 1)], j%groups(1), status, &
                     [(int(-k, c_int32_t), k=0, counts(i) - 1)] + 100_c_int32_t)
        call check(status == 0, 'split')
        call s%mesh(['all'], [counts(i)], j%groups(2:2), status)
        call check(status == 0, 'mesh')
        call s%mesh(['all'], [counts(i)], j%groups(2:2), status)
        call check(status < 0 .and. index(error_message(), 'destroy it first') /= 0, 'a mesh twice')
        call s%run(in_groups, j, status)
        call check(status == 0, 'groups')
        do k = 1, 2
            call j%groups(k)%destroy(status)
            call check(status == 0, 'destroy of a grouping')
        end do
        call s%mesh(['a', 'b'], [counts(i), 2], j%groups, status)
        call check(status < 0 .and. .not. c_associated(j%groups(1)%handle), 'a mesh that does not fit')
        x = 2
        call s%create_variable(x, j%v, status, aggregation=ditto_aggregate_sum)
        call s%run(variables, j, status)
        call check(status == 0, 'variables')
        call j%v%read(x, status)
        call check(status == 0 .and. x(2, 3) == 6*counts(i) .and. x(2, 1) == 2*counts(i), 'read')
        call j%v%assign(x, status)
        call check(status == 0, 'assign')
        call j%v%lookup([1_int64], x(:, 3:3), status)
        call check(status == 0 .and. x(2, 3) == 2*counts(i), 'lookup')
        call j%v%scatter(ditto_scatter_add, [3_int64, 2_int64], x(:, 1:2), status)
        call check(status == 0, 'scatter')
        call j%v%lookup([integer(int64) ::], x(:, 1:0), status)
        call check(status == 0, 'no rows')
        call j%v%scatter(ditto_scatter_add, [integer(int64) ::], x(:, 1:0), status)
        call check(status == 0, 'nothing to add')
        call j%v%read(x, status)
        call check(status == 0 .and. x(2, 3) == 8*counts(i) .and. x(2, 2) == 10*counts(i), 'scattered rows')
        call j%v%lookup([4_int64], x(:, 1:1), status)
        call check(status < 0 .and. index(error_message(), 'row 4 is not there') /= 0, 'no such row')
        call j%v%destroy(status)
        call s%destroy(status)
        call check(status == 0, 'destroy')
        call faults(counts(i))
    end do
    ! Options, and a number of replicas that cannot be.
    options%caller = ditto_caller_waits
    options%timeout_ms = 10000
    call s%create(2, status, options)
    call check(status == 0, 'options')
    call s%run(collectives, j, status)
    call check(status == 0, 'a caller that waits')
    call s%destroy(status)
    call s%create(1000000, status)
    call check(status < 0 .and. index(error_message(), '1000000') /= 0, 'too many replicas')
    call check(index(library_version(), '0.1') == 1, 'a version')
    print '(i0, a)', failures, ' failures'
    if (failures /= 0) stop 1
end program
