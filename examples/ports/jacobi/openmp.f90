! Jacobi's iteration for the temperature of a plate whose left edge is hot, with loops of OpenMP. It is here
! for its time: its sums are added in another order, so its last change has other bits.
!     OMP_NUM_THREADS=2 ./jacobi-openmp 512 200
module plate
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use omp_lib, only: omp_get_max_threads
    implicit none
contains
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
        !$omp parallel do schedule(static) private(i) reduction(+:change)
        do j = 1, ubound(old, 2) - 1
            do i = 1, ubound(old, 1) - 1
                new(i, j) = 0.25_real64*(old(i - 1, j) + old(i + 1, j) + old(i, j - 1) + old(i, j + 1))
                change = change + (new(i, j) - old(i, j))**2
            end do
        end do
    end function

    subroutine solve(width, iterations, change)
        integer, intent(in) :: width, iterations
        real(real64), intent(out) :: change
        real(real64), allocatable :: a(:, :), b(:, :)
        integer :: k
        allocate (a(0:width + 1, 0:width + 1), source=0.0_real64)
        call heat(a, 1)
        a(:, 0) = 1
        b = a
        do k = 1, iterations/2
            change = relax(a, b)
            change = relax(b, a)
        end do
    end subroutine
end module

program jacobi
    use plate
    implicit none
    character(len=20) :: word
    integer :: width, iterations
    real(real64) :: change
    integer(int64) :: begin, end, ticks
    width = 256
    iterations = 100
    call get_command_argument(1, word)
    if (word /= '') read (word, *) width
    call get_command_argument(2, word)
    if (word /= '') read (word, *) iterations
    call system_clock(begin, ticks)
    call solve(width, iterations, change)
    call system_clock(end)
    print '(i0, a, z16.16, a, i0, a)', omp_get_max_threads(), ' parts: change ', change, ', ', &
        (end - begin)*1000000/ticks/iterations, ' us for an iteration'
end program
