! Jacobi's iteration for the temperature of a plate whose left edge is hot, over MPI. The processes divide the
! columns of the plate among themselves.
!     mpirun -np 2 ./jacobi-mpi 512 200
module plate
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use mpi_f08
    implicit none

    ! The columns of one process. A field has one more column on each side, which belongs to a neighbour or to
    ! the edge of the plate.
    type :: part
        integer :: rank = 0, size = 1
        integer :: rows = 0, columns = 0, first = 0 ! the first column's number
    end type
contains
    ! Gives the outermost columns to the neighbours, and takes theirs.
    subroutine exchange_borders(p, t)
        type(part), intent(in) :: p
        real(real64), intent(inout) :: t(0:, 0:)
        integer :: left, right
        left = merge(p%rank - 1, MPI_PROC_NULL, p%rank > 0)
        right = merge(p%rank + 1, MPI_PROC_NULL, p%rank < p%size - 1)
        call MPI_Sendrecv(t(:, 1), p%rows + 2, MPI_DOUBLE_PRECISION, left, 0, &
                          t(:, p%columns + 1), p%rows + 2, MPI_DOUBLE_PRECISION, right, 0, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE)
        call MPI_Sendrecv(t(:, p%columns), p%rows + 2, MPI_DOUBLE_PRECISION, right, 1, &
                          t(:, 0), p%rows + 2, MPI_DOUBLE_PRECISION, left, 1, &
                          MPI_COMM_WORLD, MPI_STATUS_IGNORE)
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

    subroutine solve(p, iterations, change)
        type(part), intent(in) :: p
        integer, intent(in) :: iterations
        real(real64), intent(out) :: change
        real(real64), allocatable :: a(:, :), b(:, :)
        integer :: k
        allocate (a(0:p%rows + 1, 0:p%columns + 1), source=0.0_real64)
        call heat(a, p%first)
        if (p%rank == 0) a(:, 0) = 1
        b = a
        do k = 1, iterations/2
            call exchange_borders(p, a)
            change = relax(a, b)
            call exchange_borders(p, b)
            change = relax(b, a)
            call MPI_Allreduce(MPI_IN_PLACE, change, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
        end do
    end subroutine

    subroutine run(p, iterations)
        type(part), intent(in) :: p
        integer, intent(in) :: iterations
        real(real64) :: change
        integer(int64) :: begin, end, ticks
        call system_clock(begin, ticks)
        call solve(p, iterations, change)
        call system_clock(end)
        if (p%rank == 0) print '(i0, a, z16.16, a, i0, a)', p%size, ' parts: change ', change, ', ', &
            (end - begin)*1000000/ticks/iterations, ' us for an iteration'
    end subroutine
end module

program jacobi
    use plate
    implicit none
    character(len=20) :: word
    integer :: width, iterations
    type(part) :: p
    width = 256
    iterations = 100
    call get_command_argument(1, word)
    if (word /= '') read (word, *) width
    call get_command_argument(2, word)
    if (word /= '') read (word, *) iterations
    call MPI_Init()
    call MPI_Comm_rank(MPI_COMM_WORLD, p%rank)
    call MPI_Comm_size(MPI_COMM_WORLD, p%size)
    p%rows = width
    p%first = width*p%rank/p%size + 1
    p%columns = width*(p%rank + 1)/p%size + 1 - p%first
    call run(p, iterations)
    call MPI_Finalize()
end program
