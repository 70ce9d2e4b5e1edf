! Hosts over MPI in Fortran, for tests/fortran/mpi.sh. All replicas add up their numbers, and workers of all
! hosts add 1 to a parameter. Host 0 prints both.
module work
    use, intrinsic :: iso_fortran_env, only: int64
    use ditto
    use ditto_coordinators
    implicit none
contains
    subroutine add_up(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        integer(int64) :: sum
        sum = self%id()
        call self%all_reduce(sum, ditto_sum)
        select type (user)
        type is (integer(int64))
            if (self%is_first_of_host()) user = sum
        end select
    end subroutine

    subroutine add_one(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        integer(int64) :: one
        one = 1
        select type (user)
        type is (variable)
            call self%assign_add(user, one)
        end select
    end subroutine
end module

program mpi_hosts
    use work
    use ditto_clusters
    use ditto_mpi
    implicit none
    include 'mpif.h'
    type(cluster) :: hosts
    integer(int64), target :: sum
    integer :: status, level, code
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, code)
    call mpi_cluster(MPI_COMM_WORLD, hosts, status)
    sum = 0
    if (status == 0) call in_step
    if (status == 0) call by_workers
    if (status == 0) call hosts%destroy(status)
    call mpi_end(status)
contains
    subroutine in_step
        type(strategy) :: s
        type(strategy_options) :: options
        options%cluster = hosts%handle
        call s%create(hosts%share(8), status, options)
        if (status == 0) call s%run(add_up, sum, status)
        if (status == 0) call s%destroy(status)
        if (status == 0 .and. hosts%host() == 0) print '(a, i0)', 'sum ', sum
    end subroutine

    subroutine by_workers
        type(strategy) :: s
        type(strategy_options) :: options
        type(variable), target :: counter
        type(worker_function), target :: f
        integer(int64) :: count
        options%cluster = hosts%handle
        count = 0
        call s%create(1, status, options, ditto_parameter_server)
        if (status == 0) call s%create_variable(count, counter, status)
        f%function => add_one
        f%user => counter
        if (status == 0) call register_function('add_one', f, status)
        if (status == 0 .and. hosts%host() == 0) call coordinate(s, counter)
        if (status == 0 .and. hosts%host() > 0) call serve(s, status)
        if (status == 0) call counter%destroy(status)
        if (status == 0) call s%destroy(status)
    end subroutine

    subroutine coordinate(s, counter)
        type(strategy), intent(inout) :: s
        type(variable), intent(in) :: counter
        type(coordinator) :: c
        integer(int64) :: count
        integer :: i
        call c%create(s, status)
        do i = 1, 100
            if (status == 0) call c%schedule('add_one', status)
        end do
        if (status == 0) call c%join(status)
        if (status == 0) call counter%read(count, status)
        if (status == 0) print '(a, i0)', 'count ', count
        if (status == 0) call c%destroy(status)
    end subroutine
end program
