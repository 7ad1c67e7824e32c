def verify(lhlo, file="<lhlo>"):
    pass
