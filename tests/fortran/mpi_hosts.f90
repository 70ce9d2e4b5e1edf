! Hosts over MPI in Fortran, for tests/fortran/mpi.sh. All replicas add up their numbers. Host 0 prints the sum.
module work
    use, intrinsic :: iso_fortran_env, only: int64
    use ditto
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
end program
