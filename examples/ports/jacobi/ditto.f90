! Jacobi's iteration for the temperature of a plate whose left edge is hot, on replicas. The replicas divide
! the columns of the plate among themselves.
!     ./jacobi-ditto 512 200 2
module plate
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use ditto
    implicit none

    ! The columns of one replica. A field has one more column on each side, which belongs to a neighbour or to
    ! the edge of the plate.
    type :: part
        integer :: rank = 0, size = 1
        integer :: rows = 0, columns = 0, first = 0 ! the first column's number
    end type

    type :: task
        integer :: width = 256, iterations = 100
    end type
contains
    ! Gives the outermost columns to the neighbours, and takes theirs.
    subroutine exchange_borders(self, p, t)
        class(replica), intent(inout) :: self
        type(part), intent(in) :: p
        real(real64), contiguous, intent(inout), asynchronous :: t(0:, 0:)
        type(exchange_part) :: parts(2)
        integer :: used
        used = 0
        if (p%rank > 0) then
            used = 1
            call self%part(p%rank - 1, p%rank, t(:, 1), t(:, 0), parts(1))
        end if
        if (p%rank < p%size - 1) then
            used = used + 1
            call self%part(p%rank + 1, p%rank + 1, t(:, p%columns), t(:, p%columns + 1), parts(used))
        end if
        call self%exchange(parts(:used))
    end subroutine

    ! Sets the temperatures at the beginning, from the columns' numbers in the whole plate.
    subroutine heat(t, first)
        real(real64), intent(inout) :: t(0:, 0:)
        integer, intent(in) :: first
        integer :: i, j
        do j = 1, ubound(t, 2) - 1
            do i = 1, ubound(t, 1) - 1
                t(i, j) = mod(7*i + 13*(first + j - 1), 101)/101.0_real64
            end do
        end do
    end subroutine

    ! Sets every inner element of `new` to the mean of its four neighbours in `old`. Returns the sum of the
    ! squares of the changes.
    function relax(old, new) result(change)
        real(real64), intent(in) :: old(0:, 0:)
        real(real64), intent(inout) :: new(0:, 0:)
        real(real64) :: change
        integer :: i, j
        change = 0
        do j = 1, ubound(old, 2) - 1
            do i = 1, ubound(old, 1) - 1
                new(i, j) = 0.25_real64*(old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1))
                change = change + (new(i, j) - old(i, j))**2
            end do
        end do
    end function

    subroutine solve(self, p, iterations, change)
        class(replica), intent(inout) :: self
        type(part), intent(in) :: p
        integer, intent(in) :: iterations
        real(real64), intent(out) :: change
        real(real64), allocatable, asynchronous :: a(:, :), b(:, :)
        integer :: k
        allocate (a(0:p%rows + 1, 0:p%columns + 1), source=0.0_real64)
        call heat(a, p%first)
        if (p%rank == 0) a(:, 0) = 1
        b = a
        do k = 1, iterations/2
            call exchange_borders(self, p, a)
            change = relax(a, b)
            call exchange_borders(self, p, b)
            change = relax(b, a)
            call self%all_reduce(change, ditto_sum)
        end do
    end subroutine

    subroutine run(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        type(part) :: p
        type(task) :: t
        real(real64) :: change
        integer(int64) :: begin, end, ticks
        select type (user)
        type is (task)
            t = user
        end select
        p%rank = self%id()
        p%size = self%num_replicas()
        p%rows = t%width
        p%first = t%width*p%rank/p%size + 1
        p%columns = t%width*(p%rank + 1)/p%size + 1 - p%first
        call system_clock(begin, ticks)
        call solve(self, p, t%iterations, change)
        call system_clock(end)
        if (p%rank == 0) print '(i0, a, z16.16, a, i0, a)', p%size, ' parts: change ', change, ', ', &
            (end - begin)*1000000/ticks/t%iterations, ' us for an iteration'
    end subroutine
end module

program jacobi
    use plate
    implicit none
    character(len=20) :: word
    integer :: replicas, status
    type(task) :: t
    type(strategy) :: s
    replicas = 2
    call get_command_argument(1, word)
    if (word /= '') read (word, *) t%width
    call get_command_argument(2, word)
    if (word /= '') read (word, *) t%iterations
    call get_command_argument(3, word)
    if (word /= '') read (word, *) replicas
    call s%create(replicas, status)
    if (status == 0) call s%run(run, t, status)
    if (status /= 0) error stop error_message()
    call s%destroy(status)
end program
