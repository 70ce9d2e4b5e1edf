! Training in Fortran: a softmax regression learns to recognize handwritten digits. The library reads the rows
! and divides each batch among the replicas. Each replica computes the gradient of its rows, and an optimizer
! adds up the gradients of all replicas and updates the weights.
!     ./training [REPLICAS] [FILE]     FILE is data/digits.csv, or examples/data/digits.csv
module digits
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use, intrinsic :: iso_fortran_env, only: int32, int64, real64
    use ditto
    use ditto_input
    use ditto_optimizers
    implicit none
    integer, parameter :: pixels = 64, classes = 10, batch_rows = 32, epochs = 5

    ! What a run gives to all replicas. Replica 0 writes the results.
    type :: training
        type(iterator) :: steps
        type(variable) :: weights
        type(optimizer) :: sgd
        real(real64) :: loss = 0
        integer(int64) :: right = 0, rows = 0
    end type
contains
    ! Adds a row's gradient. Returns its loss, and whether the largest probability is that of its digit.
    subroutine learn(weights, pixel, label, gradient, loss, is_right)
        real(real64), intent(in) :: weights(0:, 0:), pixel(:)
        integer(int32), intent(in) :: label
        real(real64), intent(inout) :: gradient(0:, 0:)
        real(real64), intent(out) :: loss
        logical, intent(out) :: is_right
        real(real64) :: p(0:classes - 1), image(0:pixels)
        integer :: class
        image = [1.0_real64, pixel/16] ! the weight of the first one is the bias of a class
        p = matmul(image, weights)
        p = exp(p - maxval(p))
        p = p/sum(p)
        loss = -log(p(label))
        is_right = maxloc(p, 1) - 1 == label
        p(label) = p(label) - 1
        do class = 0, classes - 1
            gradient(:, class) = gradient(:, class) + p(class)*image/batch_rows
        end do
    end subroutine

    ! One pass over the rows.
    subroutine train(self, user)
        class(replica), intent(inout) :: self
        class(*), intent(inout) :: user
        real(real64), target :: gradient(0:pixels, 0:classes - 1)
        real(real64) :: weights(0:pixels, 0:classes - 1), loss, sums(3)
        real(real64), pointer :: images(:, :)
        integer(int32), pointer :: labels(:)
        type(batch) :: b
        logical :: is_right
        integer :: row, status
        select type (user)
        type is (training)
            sums = 0
            do
                call user%steps%next(self, b, status)
                if (status /= ditto_ok) exit
                call c_f_pointer(b%component(1)%data, images, extents(b%component(1)))
                call c_f_pointer(b%component(2)%data, labels, extents(b%component(2)))
                call self%read(user%weights, weights)
                gradient = 0
                do row = 1, int(b%rows)
                    call learn(weights, images(:, row), labels(row), gradient, loss, is_right)
                    sums = sums + [loss, merge(1.0_real64, 0.0_real64, is_right), 1.0_real64]
                end do
                call user%sgd%apply(self, [tensor_of(gradient)])
            end do
            call self%all_reduce(sums, ditto_sum)
            if (self%id() == 0) then
                user%loss = sums(1)/sums(3)
                user%right = nint(sums(2), int64)
                user%rows = nint(sums(3), int64)
            end if
        end select
    end subroutine
end module

program main
    use digits
    implicit none
    type(strategy) :: s
    type(dataset) :: rows
    type(training) :: t
    type(optimizer_options) :: options
    real(real64) :: weights(0:pixels, 0:classes - 1)
    character(len=200) :: word, path
    integer :: replicas, epoch, status
    logical :: found
    replicas = 2
    path = 'data/digits.csv'
    inquire (file=path, exist=found)
    if (.not. found) path = 'examples/data/digits.csv'
    call get_command_argument(1, word)
    if (word == '--help') then
        print '(a)', 'usage: fortran_training [REPLICAS (default: 2)] [FILE (default: the digits)]'
        stop
    end if
    status = 0
    if (word /= '') read (word, *, iostat=status) replicas
    if (status /= 0 .or. replicas < 1) error stop 'REPLICAS must be a whole number from 1 on; see --help'
    call get_command_argument(2, word)
    if (word /= '') path = word
    ! Lines of 64 grey values from 0 to 16 and the digit that they show.
    call rows%from_csv(path, [csv_columns(1, pixels, ditto_f64), csv_columns(pixels + 1, 1, ditto_i32)], &
                       status)
    if (status == 0) call rows%batch(batch_rows, status)
    if (status == 0) call s%create(replicas, status)
    weights = 0
    if (status == 0) call s%create_variable(weights, t%weights, status)
    options%rule = ditto_rule_sgd
    options%learning_rate = 0.5_real64
    if (status == 0) call t%sgd%create([t%weights], options, status)
    do epoch = 1, epochs
        if (status == 0) call t%steps%create(s, rows, status)
        if (status == 0) call s%run(train, t, status)
        if (status == 0) print '(a, i0, a, f0.4, a, i0, a, i0)', 'epoch ', epoch, ': loss ', t%loss, &
            ', right ', t%right, ' of ', t%rows
        if (status == 0) call t%steps%destroy(status)
    end do
    if (status == 0) call t%sgd%destroy(status)
    if (status == 0) call t%weights%destroy(status)
    if (status == 0) call rows%destroy(status)
    if (status /= 0) then
        print '(a)', error_message()
        stop 1
    end if
    call s%destroy(status)
end program
