! Workers in Fortran: the integral of sin(1/x) from 0.001 to 1, in 64 intervals. Towards 0 the function
! oscillates faster, so the intervals need very different times. Each worker takes the next interval when it
! has finished one, and adds the number of values that it has computed to a parameter that all workers share.
!     ./workers [WORKERS]
! On several hosts, or as several processes, each with so many workers:
!     DITTO_HOSTS=localhost:7000,localhost:7001 DITTO_HOST=0 ./workers &
!     DITTO_HOSTS=localhost:7000,localhost:7001 DITTO_HOST=1 ./workers
module integral
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use ditto
    use ditto_clusters
    use ditto_coordinators
    implicit none
    integer, parameter :: num_intervals = 64
    real(real64), parameter :: first = 0.001_real64, last = 1, tolerance = 1e-12_real64
contains
    ! Simpson's rule over an interval, or over its halves if these give another result.
    recursive subroutine integrate(from, to, total, values)
        real(real64), intent(in) :: from, to
        real(real64), intent(inout) :: total
        integer(int64), intent(inout) :: values
        real(real64) :: f(5), whole, halves, width
        integer :: i
        width = to - from
        f = [(sin(1/(from + i*width/4)), i=0, 4)]
        values = values + 5
        whole = width/6*(f(1) + 4*f(3) + f(5))
        halves = width/12*(f(1) + 4*f(2) + 2*f(3) + 4*f(4) + f(5))
        if (abs(halves - whole) < tolerance) then
            total = total + halves
        else
            call integrate(from, from + width/2, total, values)
            call integrate(from + width/2, to, total, values)
        end if
    end subroutine

    ! What a worker does with an interval, which is its argument.
    subroutine integrate_interval(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: ends(2), total
        integer(int64) :: values
        call self%argument(ends)
        if (self%status /= 0) return
        total = 0
        values = 0
        call integrate(ends(1), ends(2), total, values)
        select type (user)
        type is (variable)
            call self%assign_add(user, values)
        end select
        call self%give(total)
    end subroutine
end module

program main
    use integral
    implicit none
    type(cluster) :: hosts
    type(strategy) :: s
    type(strategy_options) :: options
    type(variable), target :: counter
    type(worker_function), target :: f
    integer(int64) :: values
    character(len=20) :: word
    integer :: workers, status
    workers = 2
    call get_command_argument(1, word)
    if (word /= '') read (word, *) workers
    call hosts%connect(status)
    options%cluster = hosts%handle
    if (status == 0) call s%create(workers, status, options, ditto_parameter_server)
    values = 0
    if (status == 0) call s%create_variable(values, counter, status)
    f%function => integrate_interval
    f%user => counter
    if (status == 0) call register_function('integrate', f, status)
    if (status == 0 .and. hosts%host() == 0) call coordinate
    if (status == 0 .and. hosts%host() > 0) call serve(s, status)
    if (status == 0) call counter%destroy(status)
    if (status == 0) call s%destroy(status)
    if (status == 0) call hosts%destroy(status)
    if (status /= 0) then
        print '(a)', error_message()
        stop 1
    end if
contains
    ! What host 0 does: it gives out the intervals.
    subroutine coordinate
        type(coordinator) :: c
        type(remote) :: results(num_intervals)
        real(real64) :: ends(2), part, total
        integer :: i
        call c%create(s, status)
        do i = 1, num_intervals
            ends = first + (last - first)*[i - 1, i]/num_intervals
            if (status == 0) call c%schedule('integrate', status, results(i), [tensor_of(ends)])
        end do
        ! The results are added in the order of the intervals, so the sum has the same bits in every run.
        total = 0
        do i = 1, num_intervals
            if (status == 0) call results(i)%result(part, status)
            if (status == 0) total = total + part
            if (status == 0) call results(i)%destroy(status)
        end do
        if (status == 0) call c%join(status)
        if (status == 0) call counter%read(values, status)
        if (status == 0) print '(a, f0.9, a, i0, a)', 'integral ', total, ' from ', values, ' values'
        if (status == 0) call c%destroy(status)
    end subroutine
end program
