! tests/embed/app/saves.f90 - a program with checkpoints in Fortran, built as a user would, outside of ditto.
program saves
    use, intrinsic :: iso_fortran_env, only: real64
    use ditto
    use ditto_checkpoints
    implicit none
    type(strategy) :: first, second
    type(variable) :: x, y
    real(real64) :: value
    integer :: status
    value = 2.5_real64
    call first%create(2, status)
    if (status == 0) call first%create_variable(value, x, status, name='x')
    if (status == 0) call save_checkpoint(first, 'saves_fortran.h5', status)
    value = 0
    if (status == 0) call second%create(3, status)
    if (status == 0) call second%create_variable(value, y, status, name='x')
    if (status == 0) call restore_checkpoint(second, 'saves_fortran.h5', status)
    if (status == 0) call y%read(value, status)
    if (status /= 0) stop error_message()
    print '(a, f3.1)', 'saved and restored: ', value
end program
