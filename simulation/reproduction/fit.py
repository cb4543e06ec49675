"""Least squares, by the normal equations: the models here have two or three terms."""


def solve(matrix, vector):
    """x with matrix x = vector, by elimination with pivots."""
    size = len(vector)
    rows = [list(row) + [value] for row, value in zip(matrix, vector)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda row: abs(rows[row][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        for row in range(size):
            if row == column:
                continue
            factor = rows[row][column] / rows[column][column]
            rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return [rows[i][size] / rows[i][i] for i in range(size)]


def least_squares(terms, values):
    """Coefficients c that make sum_j c_j terms[i][j] nearest to values[i], and R^2 of that."""
    size = len(terms[0])
    matrix = [[sum(row[i] * row[j] for row in terms) for j in range(size)] for i in range(size)]
    vector = [sum(row[i] * value for row, value in zip(terms, values)) for i in range(size)]
    coefficients = solve(matrix, vector)
    mean = sum(values) / len(values)
    residual = sum((value - sum(c * t for c, t in zip(coefficients, row))) ** 2 for row, value in zip(terms, values))
    return coefficients, 1 - residual / sum((value - mean) ** 2 for value in values)
