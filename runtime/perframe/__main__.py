"""`python -m perframe` is the command `perframe`."""

from perframe.command_line.cli import main

if __name__ == "__main__":
    main()
