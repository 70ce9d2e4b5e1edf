! Conjugate gradients for a one-dimensional Laplace operator, whose rows are divided among replicas.
module solver
    use, intrinsic :: iso_fortran_env, only: real64
    use ditto
    implicit none
    integer, parameter :: rows = 200

    type :: problem
        integer :: iterations = 0
        real(real64) :: norm = 0
    end type
contains
    ! The bits do not depend on the number of replicas.
    function dot(self, a, b) result(total)
        class(replica), intent(inout) :: self
        real(real64), intent(in) :: a(:), b(:)
        real(real64) :: total
        call self%block_dot(a, b, total)
    end function

    ! y = A x. The elements beside a replica's rows are those of its neighbours.
    subroutine multiply(self, x, y)
        class(replica), intent(inout) :: self
        real(real64), intent(inout), asynchronous :: x(0:)
        real(real64), intent(out) :: y(:)
        type(exchange_part) :: parts(2)
        integer :: n, parts_used
        n = size(y)
        parts_used = 0
        x(0) = 0
        x(n + 1) = 0
        if (self%id() > 0) then
            parts_used = 1
            call self%part(self%id() - 1, self%id(), x(1:1), x(0:0), parts(1))
        end if
        if (self%id() < self%num_replicas() - 1) then
            parts_used = parts_used + 1
            call self%part(self%id() + 1, self%id() + 1, x(n:n), x(n + 1:n + 1), parts(parts_used))
        end if
        call self%exchange(parts(:parts_used))
        y = 2*x(1:n) - x(0:n - 1) - x(2:n + 1)
    end subroutine

    subroutine solve(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64), allocatable, asynchronous :: p(:)
        real(real64), allocatable :: x(:), r(:), q(:)
        real(real64) :: old, new, alpha
        integer :: n, k
        n = rows/self%num_replicas()
        allocate (p(0:n + 1), x(n), r(n), q(n))
        x = 0
        r = 1
        p = 0
        p(1:n) = r
        old = dot(self, r, r)
        do k = 1, 2*rows
            call multiply(self, p, q)
            alpha = old/dot(self, p(1:n), q)
            x = x + alpha*p(1:n)
            r = r - alpha*q
            new = dot(self, r, r)
            if (self%status < 0 .or. new < 1e-20_real64) exit
            p(1:n) = r + new/old*p(1:n)
            old = new
        end do
        select type (user)
        type is (problem)
            if (self%id() == 0) user%iterations = k
            new = dot(self, x, x)
            if (self%id() == 0) user%norm = sqrt(new)
        end select
    end subroutine
end module

program cg
    use solver
    implicit none
    type(strategy) :: s
    type(problem) :: p
    integer :: status
    call s%create(4, status)
    if (status == 0) call s%run(solve, p, status)
    if (status /= 0) then
        print '(a)', error_message()
        stop 1
    end if
    print '(i0, a, f0.6)', p%iterations, ' iterations, norm ', p%norm
    call s%destroy(status)
end program
