! Training in Fortran: a softmax regression learns to recognize handwritten digits. Each replica computes the
! gradient of its rows of a batch. The library adds up the gradients of all replicas when they are subtracted
! from the weights.
!     ./training [REPLICAS] [FILE]     FILE is examples/data/digits.csv
module digits
    use, intrinsic :: iso_fortran_env, only: int64, real64
    use ditto
    implicit none
    integer, parameter :: pixels = 64, classes = 10, batch = 32, epochs = 5
    real(real64), parameter :: rate = 0.5_real64

    ! What a run gives to all replicas. They read the rows, and replica 0 writes the results.
    type :: training
        real(real64), allocatable :: images(:, :)
        integer, allocatable :: labels(:)
        type(variable) :: weights
        integer :: epoch = 0
        real(real64) :: loss = 0
        integer(int64) :: right = 0
    end type
contains
    ! Reads lines of 64 grey values from 0 to 16 and the digit that they show.
    subroutine read_rows(path, t, status)
        character(len=*), intent(in) :: path
        type(training), intent(inout) :: t
        integer, intent(out) :: status
        integer :: unit, rows, row, image(pixels)
        open (newunit=unit, file=path, status='old', action='read', iostat=status)
        if (status /= 0) return
        rows = 0
        do
            read (unit, *, iostat=status) image
            if (status /= 0) exit
            rows = rows + 1
        end do
        rewind (unit)
        allocate (t%images(0:pixels, rows), t%labels(rows))
        do row = 1, rows
            read (unit, *, iostat=status) image, t%labels(row)
            if (status /= 0) exit
            t%images(0, row) = 1 ! its weight is the class's bias
            t%images(1:, row) = image/16.0_real64
        end do
        close (unit)
    end subroutine

    ! Adds a row's gradient. Returns its loss, and whether the largest probability is that of its digit.
    subroutine learn(weights, image, label, gradient, loss, is_right)
        real(real64), intent(in) :: weights(0:, 0:), image(0:)
        integer, intent(in) :: label
        real(real64), intent(inout) :: gradient(0:, 0:)
        real(real64), intent(out) :: loss
        logical, intent(out) :: is_right
        real(real64) :: p(0:classes - 1)
        integer :: class
        p = matmul(image, weights)
        p = exp(p - maxval(p))
        p = p/sum(p)
        loss = -log(p(label))
        is_right = maxloc(p, 1) - 1 == label
        p(label) = p(label) - 1
        do class = 0, classes - 1
            gradient(:, class) = gradient(:, class) + p(class)*image
        end do
    end subroutine

    ! One pass over the rows. In a batch, replica i takes row i + 1 and every n-th row after it.
    subroutine train(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64) :: weights(0:pixels, 0:classes - 1), gradient(0:pixels, 0:classes - 1), loss, sums(2)
        logical :: is_right
        integer :: first, row
        select type (user)
        type is (training)
            sums = 0
            do first = 1, size(user%labels), batch
                call self%read(user%weights, weights)
                gradient = 0
                do row = first + self%id(), min(first + batch - 1, size(user%labels)), self%num_replicas()
                    call learn(weights, user%images(:, row), user%labels(row), gradient, loss, is_right)
                    sums = sums + [loss, merge(1.0_real64, 0.0_real64, is_right)]
                end do
                gradient = gradient*rate/batch
                call self%assign_sub(user%weights, gradient)
                if (self%status < 0) return
            end do
            call self%all_reduce(sums, ditto_sum)
            if (self%id() == 0) then
                user%loss = sums(1)/size(user%labels)
                user%right = nint(sums(2), int64)
            end if
        end select
    end subroutine
end module

program main
    use digits
    implicit none
    type(strategy) :: s
    type(training) :: t
    real(real64) :: weights(0:pixels, 0:classes - 1)
    character(len=200) :: word, path
    integer :: replicas, status
    replicas = 2
    path = 'examples/data/digits.csv'
    call get_command_argument(1, word)
    if (word /= '') read (word, *) replicas
    call get_command_argument(2, word)
    if (word /= '') path = word
    call read_rows(path, t, status)
    if (status /= 0) then
        print '(3a)', 'cannot read rows from ', trim(path), ': give the path of digits.csv'
        stop 1
    end if
    weights = 0
    call s%create(replicas, status)
    if (status == 0) call s%create_variable(weights, t%weights, status, aggregation=ditto_aggregate_sum)
    do while (status == 0 .and. t%epoch < epochs)
        call s%run(train, t, status)
        t%epoch = t%epoch + 1
        if (status == 0) print '(a, i0, a, f0.4, a, i0, a, i0)', 'epoch ', t%epoch, ': loss ', t%loss, &
            ', right ', t%right, ' of ', size(t%labels)
    end do
    if (status == 0) call t%weights%destroy(status)
    if (status /= 0) then
        print '(a)', error_message()
        stop 1
    end if
    call s%destroy(status)
end program
