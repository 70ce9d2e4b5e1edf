! Several hosts in Fortran (ditto_clusters): structs and constants are those of C, and calls that cannot be.
! tests/fortran/lessons.sh and mpi.sh connect processes.
program test_clusters
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_clusters
    implicit none
    type(cluster) :: hosts, second
    type(cluster_options) :: options
    type(strategy_options) :: of_strategy
    type(strategy) :: s
    integer(c_size_t) :: bytes(2)
    integer(c_int) :: values(3)
    integer :: status
    interface
        subroutine c_sizes_of_clusters(bytes) bind(c)
            import
            integer(c_size_t), intent(out) :: bytes(*)
        end subroutine
        subroutine c_cluster_values(values) bind(c)
            import
            integer(c_int), intent(out) :: values(*)
        end subroutine
        function c_cluster_options_are(o) bind(c) result(yes)
            import
            type(cluster_options), intent(in) :: o
            integer(c_int) :: yes
        end function
    end interface

    call c_sizes_of_clusters(bytes)
    call expect(all(bytes == cluster_sizes()), 'the bytes of the types')
    call c_cluster_values(values)
    call expect(all(values == [ditto_switch_default, ditto_switch_on, ditto_switch_off]), 'the constants')
    options = cluster_options(1, 2, c_null_ptr, 3)
    call expect(c_cluster_options_are(options) /= 0, 'the order of the components')
    options = cluster_options()

    call expect(hosts%num_hosts() == 1 .and. hosts%host() == 0, 'no cluster is one host')
    call hosts%connect(status, hosts='nowhere', host=0)
    call expect(status == ditto_err_invalid .and. .not. c_associated(hosts%handle), 'a host without a port')
    call hosts%connect(status, hosts='localhost:7000,localhost:7001', host=2)
    call expect(status == ditto_err_range, 'a host that is not in the list')
    call hosts%connect(status, host=-1)
    call expect(status < 0, 'a negative number')
    options%timeout_ms = 100
    call hosts%connect(status, hosts='localhost:1,localhost:2', host=1, options=options)
    call expect(status == ditto_err_timed_out, 'a host that is not there')

    call hosts%connect(status, hosts='localhost:7000', host=0, secret='word')
    call expect(status == ditto_ok, 'one host')
    call hosts%connect(status)
    call expect(status < 0 .and. index(error_message(), 'destroy it first') > 0, 'a second connect')
    call expect(hosts%num_hosts() == 1 .and. hosts%share(7) == 7 .and. hosts%share(-1) == 0, 'the share')
    call expect(len(hosts%host_name(0)) > 0 .and. hosts%host_name(1) == '', 'names')
    call expect(.not. hosts%has_life_line(), 'one host has no life line')
    of_strategy%cluster = hosts%handle
    call s%create(2, status, of_strategy)
    call expect(status == ditto_ok, 'a strategy')
    call s%destroy(status)
    call hosts%destroy(status)
    call expect(status == ditto_ok .and. .not. c_associated(hosts%handle), 'destroy')
    call second%destroy(status)
    call expect(status == ditto_ok, 'destroying nothing')
    print '(a)', 'ok'
contains
    subroutine expect(is_so, what)
        logical, intent(in) :: is_so
        character(*), intent(in) :: what
        if (is_so) return
        print '(4a)', 'not as expected: ', what, '; the last error is: ', error_message()
        stop 1
    end subroutine
end program
