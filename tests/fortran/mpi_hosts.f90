! Hosts over MPI in Fortran, for tests/fortran/mpi.sh. All replicas add up their numbers. Host 0 prints the
! sum, and each host what is not as expected.
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
    use, intrinsic :: iso_c_binding
    use work
    use ditto_mpi
    implicit none
    include 'mpif.h'
    interface
        function c_cluster_options_are(o) bind(c) result(yes)
            import
            type(cluster_options), intent(in) :: o
            integer(c_int) :: yes
        end function
    end interface
    type(cluster) :: hosts
    type(cluster_options) :: options
    integer(int64), target :: sum
    integer :: status, level, code
    call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, code)
    call expect(hosts%num_hosts() == 1 .and. hosts%host() == 0, 'no cluster is one host')
    call hosts%destroy(status)
    call expect(status == ditto_ok, 'destroying nothing')
    options = cluster_options(1, 2, c_null_ptr, 3)
    call expect(c_cluster_options_are(options) /= 0, 'the order of the options')
    options = cluster_options(timeout_ms=60000, life_line=ditto_switch_off)
    call mpi_cluster(MPI_COMM_WORLD, hosts, status, options)
    call expect(.not. hosts%has_life_line(), 'the life line is off')
    call expect(len(hosts%host_name(hosts%host())) > 0 .and. hosts%host_name(99) == '', 'names')
    call expect(hosts%share(-1) == 0, 'a share of nothing')
    sum = 0
    if (status == 0) call in_step
    if (status == 0) then
        call mpi_cluster(MPI_COMM_WORLD, hosts, status)
        call expect(status < 0 .and. index(error_message(), 'destroy it first') > 0, 'a second cluster')
        call hosts%destroy(status)
        call expect(.not. c_associated(hosts%handle), 'destroy')
    end if
    call mpi_end(status)
contains
    subroutine expect(is_so, what)
        logical, intent(in) :: is_so
        character(*), intent(in) :: what
        if (.not. is_so) print '(4a)', 'not as expected: ', what, '; the last error is: ', error_message()
    end subroutine

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
