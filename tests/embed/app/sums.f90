! tests/embed/app/sums.f90 - a program with workers in Fortran, built as a user would, outside of ditto.
module functions
    use, intrinsic :: iso_fortran_env, only: real64
    use ditto
    implicit none
contains
    subroutine add_argument(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: x
        x = 0
        call self%argument(x)
        select type (user)
        type is (variable)
            call self%assign_add(user, x)
        end select
    end subroutine
end module

program sums
    use functions
    use ditto_coordinators
    implicit none
    type(strategy) :: s
    type(coordinator) :: c
    type(variable), target :: total
    type(worker_function), target :: add
    real(real64) :: x
    integer :: i, status
    x = 0
    call s%create(2, status, kind=ditto_parameter_server)
    if (status == 0) call s%create_variable(x, total, status)
    add%function => add_argument
    add%user => total
    if (status == 0) call register_function('add', add, status)
    if (status == 0) call c%create(s, status)
    do i = 1, 100
        x = i
        if (status == 0) call c%schedule('add', status, arguments=[tensor_of(x)])
    end do
    if (status == 0) call c%join(status)
    if (status == 0) call total%read(x, status)
    if (status == 0) call c%destroy(status)
    if (status == 0) call total%destroy(status)
    if (status == 0) call s%destroy(status)
    if (status /= 0) stop error_message()
    print '(a, f6.1)', 'sum of 2 workers: ', x
end program
