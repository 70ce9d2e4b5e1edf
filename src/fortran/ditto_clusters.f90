! src/fortran/ditto_clusters.f90 - several hosts, in Fortran. Each process of a program is a host.
!
!     call hosts%connect(status)                  ! type(cluster): over TCP, or mpi_cluster of ditto_mpi
!     options%cluster = hosts%handle
!     call s%create(hosts%share(8), status, options)
!
! The rules are those of the C headers ditto/cluster.h and ditto/tcp.h. Hosts are counted from 0, as replicas
! are.
module ditto_clusters
    use, intrinsic :: iso_c_binding
    use ditto
    implicit none
    private

    public :: cluster, cluster_options, cluster_sizes

    integer(c_int), parameter, public :: ditto_switch_default = 0, ditto_switch_on = 1, ditto_switch_off = 2

    ! -- types --

    ! The options of a cluster, as ditto_cluster_options has them. The components have their defaults. `name`
    ! is an address for C (c_loc).
    type, bind(c) :: cluster_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: timeout_ms = 0
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: life_line = 0
    end type

    type, bind(c) :: tcp_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: hosts = c_null_ptr
        integer(c_int32_t) :: host = 0
        integer(c_int) :: has_host = 0
        integer(c_int32_t) :: port = 0
        type(c_ptr) :: secret = c_null_ptr
    end type

    ! The hosts of a program. It is destroyed by destroy, after the strategies that span it.
    type :: cluster
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: connect => cluster_connect
        procedure, non_overridable :: num_hosts => cluster_num_hosts
        procedure, non_overridable :: host => cluster_host
        procedure, non_overridable :: host_name => cluster_host_name
        procedure, non_overridable :: has_life_line => cluster_has_life_line
        procedure, non_overridable :: share => cluster_share
        procedure, non_overridable :: destroy => cluster_destroy
    end type

    ! -- C --

    interface
        function c_connect(tcp, options, out) bind(c, name='ditto_tcp_cluster') result(status)
            import
            type(tcp_options), intent(in) :: tcp
            type(cluster_options), intent(in) :: options
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_destroy(c) bind(c, name='ditto_cluster_destroy') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int) :: status
        end function
        pure function c_num_hosts(c) bind(c, name='ditto_cluster_num_hosts') result(n)
            import
            type(c_ptr), value, intent(in) :: c
            integer(c_int32_t) :: n
        end function
        pure function c_host(c) bind(c, name='ditto_cluster_host') result(n)
            import
            type(c_ptr), value, intent(in) :: c
            integer(c_int32_t) :: n
        end function
        function c_host_name(c, host) bind(c, name='ditto_cluster_host_name') result(name)
            import
            type(c_ptr), value :: c
            integer(c_int32_t), value :: host
            type(c_ptr) :: name
        end function
        pure function c_has_life_line(c) bind(c, name='ditto_cluster_has_life_line') result(has)
            import
            type(c_ptr), value, intent(in) :: c
            integer(c_int) :: has
        end function
        pure function c_share(c, n) bind(c, name='ditto_cluster_share') result(share)
            import
            type(c_ptr), value, intent(in) :: c
            integer(c_int32_t), value, intent(in) :: n
            integer(c_int32_t) :: share
        end function
    end interface

contains

    ! The bytes of the types that C has too, for a test.
    function cluster_sizes() result(bytes)
        integer(c_size_t) :: bytes(2)
        type(cluster_options) :: options
        type(tcp_options) :: tcp
        bytes = [c_sizeof(options), c_sizeof(tcp)]
    end function

    ! Connects the processes by TCP. What is not given comes from the environment: `hosts` is a list as
    ! 'node1:7000,node2:7000' (DITTO_HOSTS, or what a launcher says), and `host` the number of this process in
    ! it (DITTO_HOST). Without both there is one host. `port` is that of the first host of each machine if a
    ! launcher tells the hosts (DITTO_PORT), and `secret` a word that hosts must show (DITTO_SECRET).
    subroutine cluster_connect(self, status, hosts, host, options, port, secret)
        class(cluster), intent(inout) :: self
        integer, intent(out) :: status
        character(*), intent(in), optional :: hosts, secret
        integer, intent(in), optional :: host, port
        type(cluster_options), intent(in), optional :: options
        character(:), allocatable, target :: list, word
        type(tcp_options) :: tcp
        type(cluster_options) :: given
        if (c_associated(self%handle)) then
            status = failure('connect: the cluster exists: destroy it first')
            return
        end if
        tcp%struct_size = c_sizeof(tcp)
        if (present(hosts)) then
            list = trim(hosts)//c_null_char
            tcp%hosts = c_loc(list)
        end if
        if (present(secret)) then
            word = trim(secret)//c_null_char
            tcp%secret = c_loc(word)
        end if
        if (present(host)) then
            tcp%host = int(host, c_int32_t)
            tcp%has_host = 1
        end if
        if (present(port)) tcp%port = int(port, c_int32_t)
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        status = c_connect(tcp, given, self%handle)
        if (status < 0) self%handle = c_null_ptr
    end subroutine

    pure function cluster_num_hosts(self) result(n)
        class(cluster), intent(in) :: self
        integer :: n
        n = int(c_num_hosts(self%handle))
    end function

    ! The number of this host, from 0.
    pure function cluster_host(self) result(n)
        class(cluster), intent(in) :: self
        integer :: n
        n = int(c_host(self%handle))
    end function

    ! The name of a host, or nothing if there is no such host.
    function cluster_host_name(self, host) result(name)
        class(cluster), intent(in) :: self
        integer, intent(in) :: host
        character(:), allocatable :: name
        type(c_ptr) :: text
        name = ''
        text = c_host_name(self%handle, int(host, c_int32_t))
        if (c_associated(text)) name = from_c(text)
    end function

    ! Whether the end of a process is noticed at once.
    pure function cluster_has_life_line(self) result(has)
        class(cluster), intent(in) :: self
        logical :: has
        has = c_has_life_line(self%handle) /= 0
    end function

    ! This host's share of a number of replicas, as even as possible. 0 if there are more hosts.
    pure function cluster_share(self, num_replicas) result(share)
        class(cluster), intent(in) :: self
        integer, intent(in) :: num_replicas
        integer :: share
        share = int(c_share(self%handle, int(max(num_replicas, 0), c_int32_t)))
    end function

    ! A cluster with a message that a lost host leaves unfinished is gone after ditto_err_poisoned, too.
    subroutine cluster_destroy(self, status)
        class(cluster), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status >= 0 .or. status == ditto_err_poisoned) self%handle = c_null_ptr
    end subroutine
end module
