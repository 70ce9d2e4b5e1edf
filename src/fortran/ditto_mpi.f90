! src/fortran/ditto_mpi.f90 - several hosts, which are the ranks of an MPI communicator, in Fortran. A program
! that uses this module links the companion of its MPI, ditto-openmpi or ditto-mpich.
!
!     call MPI_Init_thread(MPI_THREAD_FUNNELED, level, code)
!     call mpi_cluster(MPI_COMM_WORLD, hosts, status)         ! with mpi_f08: MPI_COMM_WORLD%MPI_VAL
!     options%cluster = hosts%handle
!     call s%create(hosts%share(8), status, options)
!     ...
!     call hosts%destroy(status)
!     call mpi_end(status)
!
! The rules are those of the C headers ditto/mpi.h and ditto/cluster.h. Hosts are counted from 0, as replicas
! are.
module ditto_mpi
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_internal
    implicit none
    private

    public :: cluster, cluster_options, mpi_cluster, mpi_end
    public :: ditto_switch_default, ditto_switch_on, ditto_switch_off

    ! The options of a cluster, as ditto_cluster_options has them. The components have their defaults. `name`
    ! is an address for C (c_loc).
    type, bind(c) :: cluster_options
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: timeout_ms = 0
        type(c_ptr) :: name = c_null_ptr
        integer(c_int) :: life_line = 0
    end type

    ! ditto_cluster_properties of C.
    type, bind(c) :: cluster_properties
        integer(c_size_t) :: struct_size = 0
        integer(c_int32_t) :: num_hosts = 0
        integer(c_int32_t) :: host = 0
        type(c_ptr) :: names = c_null_ptr
        integer(c_int) :: has_life_line = 0
    end type

    ! The hosts of a program. It is destroyed by destroy, after the strategies that span it.
    type :: cluster
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: num_hosts => cluster_num_hosts
        procedure, non_overridable :: host => cluster_host
        procedure, non_overridable :: host_name => cluster_host_name
        procedure, non_overridable :: has_life_line => cluster_has_life_line
        procedure, non_overridable :: share => cluster_share
        procedure, non_overridable :: destroy => cluster_destroy
    end type

    interface
        function c_cluster(comm, options, out) bind(c, name='dti_mpi_cluster_f') result(status)
            import
            integer(c_int), value :: comm
            type(cluster_options), intent(in) :: options
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_destroy(c) bind(c, name='ditto_cluster_destroy') result(status)
            import
            type(c_ptr), value :: c
            integer(c_int) :: status
        end function
        function c_info(c, out) bind(c, name='ditto_cluster_info') result(status)
            import
            type(c_ptr), value :: c
            type(cluster_properties), intent(inout) :: out
            integer(c_int) :: status
        end function
        pure function c_share(c, n) bind(c, name='ditto_cluster_share') result(share)
            import
            type(c_ptr), value, intent(in) :: c
            integer(c_int32_t), value, intent(in) :: n
            integer(c_int32_t) :: share
        end function
        function c_end(status) bind(c, name='ditto_mpi_end') result(code)
            import
            integer(c_int), value :: status
            integer(c_int) :: code
        end function
    end interface

contains

    ! Makes a cluster of the ranks of a communicator. Every rank calls it.
    subroutine mpi_cluster(comm, hosts, status, options)
        integer, intent(in) :: comm
        class(cluster), intent(inout) :: hosts
        integer, intent(out) :: status
        type(cluster_options), intent(in), optional :: options
        type(cluster_options) :: given
        if (exists(hosts%handle, 'mpi_cluster: the cluster', status)) return
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        status = c_cluster(int(comm, c_int), given, hosts%handle)
        if (status < 0) hosts%handle = c_null_ptr
    end subroutine

    function properties_of(self) result(found)
        class(cluster), intent(in) :: self
        type(cluster_properties) :: found
        integer :: ignored
        found%struct_size = c_sizeof(found)
        ignored = c_info(self%handle, found)
    end function

    function cluster_num_hosts(self) result(n)
        class(cluster), intent(in) :: self
        integer :: n
        type(cluster_properties) :: found
        found = properties_of(self)
        n = int(found%num_hosts)
    end function

    ! The number of this host, from 0.
    function cluster_host(self) result(n)
        class(cluster), intent(in) :: self
        integer :: n
        type(cluster_properties) :: found
        found = properties_of(self)
        n = int(found%host)
    end function

    ! The name of a host, or nothing if there is no such host.
    function cluster_host_name(self, host) result(name)
        class(cluster), intent(in) :: self
        integer, intent(in) :: host
        character(:), allocatable :: name
        type(cluster_properties) :: found
        type(c_ptr), pointer :: names(:)
        name = ''
        found = properties_of(self)
        if (host < 0 .or. host >= found%num_hosts .or. .not. c_associated(found%names)) return
        call c_f_pointer(found%names, names, [found%num_hosts])
        name = from_c(names(host + 1))
    end function

    ! Whether the end of a process is noticed at once.
    function cluster_has_life_line(self) result(has)
        class(cluster), intent(in) :: self
        logical :: has
        type(cluster_properties) :: found
        found = properties_of(self)
        has = found%has_life_line /= 0
    end function

    ! This host's share of a number of replicas, as even as possible. 0 if there are more hosts.
    pure function cluster_share(self, num_replicas) result(share)
        class(cluster), intent(in) :: self
        integer, intent(in) :: num_replicas
        integer :: share
        share = int(c_share(self%handle, int(max(num_replicas, 0), c_int32_t)))
    end function

    ! The cluster is gone also if a lost host leaves a message unfinished (ditto_err_poisoned), and if MPI was
    ! finalized before (ditto_err_invalid).
    subroutine cluster_destroy(self, status)
        class(cluster), intent(inout) :: self
        integer, intent(out) :: status
        status = c_destroy(self%handle)
        if (status >= 0 .or. status == ditto_err_poisoned .or. status == ditto_err_invalid) &
            self%handle = c_null_ptr
    end subroutine

    ! Finalizes MPI. After an error, writes its message to stderr, and ends the program with the exit status
    ! 1. After errors that leave a host behind, MPI_Abort is called, because MPI_Finalize might wait for ever.
    subroutine mpi_end(status)
        integer, intent(in) :: status
        if (c_end(int(status, c_int)) /= 0) stop 1
    end subroutine
end module
