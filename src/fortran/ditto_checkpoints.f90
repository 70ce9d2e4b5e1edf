! src/fortran/ditto_checkpoints.f90 - checkpoints in Fortran. Programs that use the module link the library
! ditto-hdf5.
!
!     call save_checkpoint(s, 'run.h5', status, arrays=[named_array('field', tensor_of(t))])
!     ...
!     call restore_checkpoint(s, 'run.h5', status)
!     call file%open('run.h5', status)
!     if (status == 0) call file%read('field', t, status)
!
! The rules are those of the C header ditto/checkpoint.h. In a file, dimensions are in the order of C.
module ditto_checkpoints
    use, intrinsic :: iso_c_binding
    use ditto
    use ditto_internal
    implicit none
    private

    public :: save_checkpoint, restore_checkpoint, latest_checkpoint
    public :: checkpoint, checkpointer, named_array, checkpoint_sizes

    ! -- types --

    ! An array of the program that is saved with the variables: named_array('field', tensor_of(t)).
    type :: named_array
        character(200) :: name = ''
        type(tensor) :: elements
    end type

    ! A file that is open for reading.
    type :: checkpoint
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: open => checkpoint_open
        procedure, non_overridable :: step => checkpoint_step
        procedure, non_overridable :: read => checkpoint_read
        procedure, non_overridable :: close => checkpoint_close
    end type

    ! Saves checkpoints to a folder and keeps the newest ones.
    type :: checkpointer
        type(c_ptr) :: handle = c_null_ptr
    contains
        procedure, non_overridable :: create => checkpointer_create
        procedure, non_overridable :: save => checkpointer_save
        procedure, non_overridable :: wait => checkpointer_wait
        procedure, non_overridable :: destroy => checkpointer_destroy
    end type

    ! -- C --

    type, bind(c) :: c_data
        type(c_ptr) :: name = c_null_ptr
        type(tensor) :: elements = tensor()
    end type

    type, bind(c) :: save_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: variables = c_null_ptr
        integer(c_size_t) :: num_variables = 0
        integer(c_int64_t) :: step = 0
        type(c_ptr) :: attributes = c_null_ptr
        integer(c_size_t) :: num_attributes = 0
        type(c_ptr) :: data = c_null_ptr
        integer(c_size_t) :: num_data = 0
    end type

    type, bind(c) :: restore_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: variables = c_null_ptr
        integer(c_size_t) :: num_variables = 0
        integer(c_int) :: partial = 0
    end type

    type, bind(c) :: restore_status
        integer(c_size_t) :: num_restored = 0
        integer(c_size_t) :: num_held = 0
        integer(c_size_t) :: num_missing = 0
    end type

    type, bind(c) :: checkpointer_options
        integer(c_size_t) :: struct_size = 0
        type(c_ptr) :: prefix = c_null_ptr
        integer(c_int32_t) :: keep = 0
        integer(c_int) :: background = 0
    end type

    type, bind(c) :: c_properties
        integer(c_size_t) :: struct_size = 0
        integer(c_int64_t) :: step = 0
        type(c_ptr) :: version = c_null_ptr
        integer(c_size_t) :: num_entries = 0
        type(c_ptr) :: attributes = c_null_ptr
        integer(c_size_t) :: num_attributes = 0
    end type

    type, bind(c) :: c_entry
        type(c_ptr) :: name = c_null_ptr
        type(tensor) :: spec = tensor()
        integer(c_int) :: synchronization = 0
        integer(c_int) :: aggregation = 0
        integer(c_int) :: trainable = 0
        integer(c_int) :: is_data = 0
    end type

    ! The arrays of a save as C has them.
    type :: data_list
        type(c_data), allocatable :: arrays(:)
        type(text_list) :: names
    end type

    interface
        function c_save(handle, path, options) bind(c, name='ditto_checkpoint_save') result(status)
            import
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: path(*)
            type(save_options), intent(in) :: options
            integer(c_int) :: status
        end function
        function c_restore(handle, path, options, done) bind(c, name='ditto_checkpoint_restore') &
            result(status)
            import
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: path(*)
            type(restore_options), intent(in) :: options
            type(restore_status), intent(inout) :: done
            integer(c_int) :: status
        end function
        function c_latest(handle, folder, prefix, path, capacity, length, step) &
            bind(c, name='ditto_checkpoint_latest') result(status)
            import
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: folder(*), prefix(*)
            character(kind=c_char), intent(inout) :: path(*)
            integer(c_size_t), value :: capacity
            integer(c_size_t), intent(out) :: length
            integer(c_int64_t), intent(out) :: step
            integer(c_int) :: status
        end function
        function c_open(handle, path, out) bind(c, name='ditto_checkpoint_open') result(status)
            import
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: path(*)
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_close(handle) bind(c, name='ditto_checkpoint_close') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        function c_info(handle, out) bind(c, name='ditto_checkpoint_info') result(status)
            import
            type(c_ptr), value :: handle
            type(c_properties), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_get(handle, i, out) bind(c, name='ditto_checkpoint_get') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_size_t), value :: i
            type(c_entry), intent(inout) :: out
            integer(c_int) :: status
        end function
        function c_read(handle, name, dst, bytes) bind(c, name='ditto_checkpoint_read') result(status)
            import
            type(c_ptr), value :: handle, dst
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: bytes
            integer(c_int) :: status
        end function
        function c_checkpointer_create(handle, folder, options, out) &
            bind(c, name='ditto_checkpointer_create') result(status)
            import
            type(c_ptr), value :: handle
            character(kind=c_char), intent(in) :: folder(*)
            type(checkpointer_options), intent(in) :: options
            type(c_ptr), intent(out) :: out
            integer(c_int) :: status
        end function
        function c_checkpointer_save(handle, options) bind(c, name='ditto_checkpointer_save') result(status)
            import
            type(c_ptr), value :: handle
            type(save_options), intent(in) :: options
            integer(c_int) :: status
        end function
        function c_checkpointer_wait(handle) bind(c, name='ditto_checkpointer_wait') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        function c_checkpointer_destroy(handle) bind(c, name='ditto_checkpointer_destroy') result(status)
            import
            type(c_ptr), value :: handle
            integer(c_int) :: status
        end function
        function c_tensor_bytes(view) bind(c, name='ditto_tensor_bytes') result(bytes)
            import
            type(tensor), intent(in) :: view
            integer(c_size_t) :: bytes
        end function
        function c_strcmp(left, right) bind(c, name='strcmp') result(order)
            import
            type(c_ptr), value :: left
            character(kind=c_char), intent(in) :: right(*)
            integer(c_int) :: order
        end function
    end interface

contains

    ! The bytes of the types that C has too, for a test.
    function checkpoint_sizes() result(bytes)
        integer(c_size_t) :: bytes(7)
        bytes = [storage_size(c_data()), storage_size(save_options()), storage_size(restore_options()), &
                 storage_size(restore_status()), storage_size(checkpointer_options()), &
                 storage_size(c_properties()), storage_size(c_entry())]/8
    end function

    ! -- saving --

    ! Writes all variables of the strategy and the given arrays to a file. Outside of runs.
    subroutine save_checkpoint(s, path, status, step, arrays)
        type(strategy), intent(in) :: s
        character(*), intent(in) :: path
        integer, intent(out) :: status
        integer(c_int64_t), intent(in), optional :: step
        type(named_array), intent(in), optional :: arrays(:)
        type(data_list), target :: list
        type(save_options) :: options
        call make_options('save_checkpoint', step, arrays, list, options, status)
        if (status >= 0) status = c_save(s%handle, trim(path)//c_null_char, options)
    end subroutine

    subroutine make_options(procedure, step, arrays, list, options, status)
        character(*), intent(in) :: procedure
        integer(c_int64_t), intent(in), optional :: step
        type(named_array), intent(in), optional :: arrays(:)
        type(data_list), intent(inout), target :: list
        type(save_options), intent(out) :: options
        integer, intent(out) :: status
        integer :: i
        status = ditto_ok
        options%struct_size = c_sizeof(options)
        if (present(step)) options%step = step
        if (.not. present(arrays)) return
        status = check_views(procedure, arrays%elements)
        if (status < 0) return
        if (refused(any(len_trim(arrays%name) == len(arrays%name)), &
                    procedure//': the name of an array may be cut: it has 200 characters', status)) return
        call list_texts(arrays%name, list%names)
        list%arrays = [(c_data(list%names%pointers(i), arrays(i)%elements), i=1, size(arrays))]
        options%data = c_loc(list%arrays)
        options%num_data = size(arrays, kind=c_size_t)
    end subroutine

    ! -- restoring --

    ! Writes the values of a file to the variables of the same names. With `partial`, variables that are not
    ! in the file keep their values. Outside of runs.
    subroutine restore_checkpoint(s, path, status, partial, num_restored)
        type(strategy), intent(in) :: s
        character(*), intent(in) :: path
        integer, intent(out) :: status
        logical, intent(in), optional :: partial
        integer, intent(out), optional :: num_restored
        type(restore_options) :: options
        type(restore_status) :: done
        options%struct_size = c_sizeof(options)
        if (present(partial)) options%partial = merge(1_c_int, 0_c_int, partial)
        status = c_restore(s%handle, trim(path)//c_null_char, options, done)
        if (present(num_restored)) num_restored = int(done%num_restored)
    end subroutine

    ! Finds the file with the highest step in a folder. Over several hosts it is a folder of the first host.
    ! The status is ditto_err_not_found if there is none.
    subroutine latest_checkpoint(s, folder, path, step, status, prefix)
        type(strategy), intent(in) :: s
        character(*), intent(in) :: folder
        character(:), allocatable, intent(out) :: path
        integer(c_int64_t), intent(out) :: step
        integer, intent(out) :: status
        character(*), intent(in), optional :: prefix
        character(4096, c_char) :: found
        character(:), allocatable :: of
        integer(c_size_t) :: length
        of = 'checkpoint'//c_null_char
        if (present(prefix)) of = trim(prefix)//c_null_char
        step = 0
        path = ''
        status = c_latest(s%handle, trim(folder)//c_null_char, of, found, len(found, kind=c_size_t), &
                          length, step)
        if (status < 0) return
        if (refused(length >= len(found), 'latest_checkpoint: the path has more than 4095 bytes', status)) &
            return
        path = found(1:length)
    end subroutine

    ! -- one file --

    subroutine checkpoint_open(self, path, status)
        class(checkpoint), intent(inout) :: self
        character(*), intent(in) :: path
        integer, intent(out) :: status
        if (refused(c_associated(self%handle), 'open: the checkpoint is open: close it first', status)) return
        status = c_open(c_null_ptr, trim(path)//c_null_char, self%handle)
    end subroutine

    function checkpoint_step(self) result(step)
        class(checkpoint), intent(in) :: self
        integer(c_int64_t) :: step
        type(c_properties) :: found
        found = properties_of(self)
        step = found%step
    end function

    function properties_of(self) result(found)
        class(checkpoint), intent(in) :: self
        type(c_properties) :: found
        integer :: ignored
        found%struct_size = c_sizeof(found)
        ignored = c_info(self%handle, found)
    end function

    ! Reads a variable or an array of the program into an array of the same type and number of elements.
    subroutine checkpoint_read(self, name, x, status)
        class(checkpoint), intent(in) :: self
        character(*), intent(in) :: name
        type(*), dimension(..), target :: x
        integer, intent(out) :: status
        type(tensor) :: views(1)
        type(c_properties) :: found
        type(c_entry) :: entry
        integer(c_size_t) :: i
        views(1) = tensor_of(x)
        status = check_views('read', views)
        if (status < 0) return
        found = properties_of(self)
        do i = 1, found%num_entries
            status = c_get(self%handle, i - 1, entry)
            if (status < 0) return
            if (c_strcmp(entry%name, trim(name)//c_null_char) /= 0) cycle
            if (entry%spec%dtype /= views(1)%dtype) then
                status = failure('read: the array is of another type than "'//trim(name)//'"')
                return
            end if
        end do
        status = c_read(self%handle, trim(name)//c_null_char, views(1)%data, c_tensor_bytes(views(1)))
    end subroutine

    subroutine checkpoint_close(self, status)
        class(checkpoint), intent(inout) :: self
        integer, intent(out) :: status
        status = c_close(self%handle)
        if (status >= 0) self%handle = c_null_ptr
    end subroutine

    ! -- a folder of checkpoints --

    ! Keeps the newest `keep` files. With `background`, another thread writes the file of a save.
    subroutine checkpointer_create(self, s, folder, status, prefix, keep, background)
        class(checkpointer), intent(inout) :: self
        type(strategy), intent(in) :: s
        character(*), intent(in) :: folder
        integer, intent(out) :: status
        character(*), intent(in), optional :: prefix
        integer, intent(in), optional :: keep
        logical, intent(in), optional :: background
        type(checkpointer_options) :: options
        character(:), allocatable, target :: of
        if (exists(self%handle, 'create: the checkpointer', status)) return
        options%struct_size = c_sizeof(options)
        if (present(prefix)) then
            of = trim(prefix)//c_null_char
            options%prefix = c_loc(of)
        end if
        if (present(keep)) then
            if (refused(keep < 1, 'create: keep is below 1: give the number of files to keep', status)) return
            options%keep = int(keep, c_int32_t)
        end if
        if (present(background)) options%background = merge(1_c_int, 0_c_int, background)
        status = c_checkpointer_create(s%handle, trim(folder)//c_null_char, options, self%handle)
    end subroutine

    subroutine checkpointer_save(self, step, status, arrays)
        class(checkpointer), intent(in) :: self
        integer(c_int64_t), intent(in) :: step
        integer, intent(out) :: status
        type(named_array), intent(in), optional :: arrays(:)
        type(data_list), target :: list
        type(save_options) :: options
        call make_options('save', step, arrays, list, options, status)
        if (status >= 0) status = c_checkpointer_save(self%handle, options)
    end subroutine

    ! Waits until no file is being written.
    subroutine checkpointer_wait(self, status)
        class(checkpointer), intent(in) :: self
        integer, intent(out) :: status
        status = c_checkpointer_wait(self%handle)
    end subroutine

    subroutine checkpointer_destroy(self, status)
        class(checkpointer), intent(inout) :: self
        integer, intent(out) :: status
        status = c_checkpointer_destroy(self%handle)
        ! The checkpointer is gone after an error of the last save, too.
        if (status >= 0 .or. (status /= ditto_err_busy .and. status /= ditto_err_context)) &
            self%handle = c_null_ptr
    end subroutine
end module
