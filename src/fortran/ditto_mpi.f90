! src/fortran/ditto_mpi.f90 - the ranks of an MPI communicator as hosts, in Fortran. A program that uses this
! module links the companion of its MPI, ditto-openmpi or ditto-mpich.
!
!     call MPI_Init_thread(MPI_THREAD_MULTIPLE, level, code)
!     call mpi_cluster(MPI_COMM_WORLD, hosts, status)         ! with mpi_f08: MPI_COMM_WORLD%MPI_VAL
!     ...
!     call hosts%destroy(status)
!     call mpi_end(status)
!
! The rules are those of the C header ditto/mpi.h.
module ditto_mpi
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_clusters
    implicit none
    private

    public :: mpi_cluster, mpi_end

    interface
        function c_cluster(comm, options, out) bind(c, name='ditto_mpi_cluster_f') result(status)
            import
            integer, value :: comm
            type(cluster_options), intent(in) :: options
            type(c_ptr), intent(inout) :: out
            integer(c_int) :: status
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
        if (c_associated(hosts%handle)) then
            status = failure('mpi_cluster: the cluster exists: destroy it first')
            return
        end if
        if (present(options)) given = options
        given%struct_size = c_sizeof(given)
        status = c_cluster(comm, given, hosts%handle)
        if (status < 0) hosts%handle = c_null_ptr
    end subroutine

    ! Finalizes MPI. After an error, writes its message to stderr, and ends the program with the exit status
    ! 1. After errors that leave a host behind, MPI_Abort is called, because MPI_Finalize might wait for ever.
    subroutine mpi_end(status)
        integer, intent(in) :: status
        if (c_end(int(status, c_int)) /= 0) stop 1
    end subroutine
end module
