class CompileTimeAssertionFailure(Exception):
    pass
